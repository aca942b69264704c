// Opens models of every kind through a FileSet that is not mapped, as in a browser, and natively. Tests the sentences
// for files that are no model, and reads back what the GGUF and safetensors writers wrote.
#include "formats/checkpoint.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/process.h"
#include "formats/architectures/config.h"
#include "formats/file_set_native.h"
#include "formats/fuzz_files.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/recognise.h"
#include "formats/safetensors/safetensors_writer.h"
#include "formats/test_helpers.h"
#include "formats/tower_padding.h"

namespace doppler::formats {
namespace {

using Files = MemoryFileSet::Files;

std::vector<uint8_t> small_gguf(uint32_t split_number = 0, uint32_t split_count = 1,
                                std::string tensor = "weight") {
  GgufHeader header;
  header.add_string("general.architecture", "llama");
  header.add_u32("llama.block_count", 2);
  header.add_f32("llama.rope.freq_base", 10000);
  header.add_bool("tokenizer.ggml.add_bos_token", true);
  header.add_strings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "",
                                                                       "\xc4\xa0"
                                                                       "b"});
  header.add_i32s("tokenizer.ggml.token_type", std::vector<int32_t>{1, 3, 1});
  if (split_count > 1) {
    header.add_u32("split.no", split_number);
    header.add_u32("split.count", split_count);
  }
  header.add_tensor(std::move(tensor), DType::kQ8_0, {2, 32});
  header.add_tensor("norm" + std::to_string(split_number), DType::kF32, {3});
  MemorySink sink;
  GgufWriter writer(std::move(header), sink);
  EXPECT_TRUE(writer.begin());
  std::vector<uint8_t> weight(68);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<uint8_t>(i);
  EXPECT_TRUE(writer.write(std::span(weight).first(10)));  // any pieces will do
  EXPECT_TRUE(writer.write(std::span(weight).subspan(10)));
  EXPECT_FALSE(writer.finish()) << "the norm's data is missing";
  EXPECT_TRUE(writer.write(std::vector<uint8_t>(12, 7)));
  EXPECT_TRUE(writer.finish());
  EXPECT_FALSE(writer.write(weight));
  return sink.bytes();
}

std::vector<uint8_t> small_safetensors(std::vector<std::string> names) {
  const std::vector<uint8_t> data = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<SafetensorsItem> items;
  for (std::string& name : names) items.push_back({std::move(name), DType::kF16, {2, 2}, data});
  MemorySink sink;
  const std::pair<std::string, std::string> metadata[] = {{"made_by", "doppler"}};
  EXPECT_TRUE(write_safetensors(items, metadata, sink));
  return sink.bytes();
}

TEST(Checkpoint, ReadsGguf) {
  const auto model = must(open_in_memory({{"m.gguf", small_gguf()}}, "m.gguf"));
  ASSERT_EQ(model->kind(), Checkpoint::Kind::kGguf);
  const GgufFile& gguf = *model->gguf();
  EXPECT_EQ(gguf.version(), 3u);
  EXPECT_EQ(must(gguf.get_string("general.architecture")), "llama");
  EXPECT_EQ(must(gguf.get_integer("llama.block_count")), 2);
  EXPECT_EQ(must(gguf.get_number("llama.rope.freq_base")), 10000.0);
  EXPECT_EQ(must(gguf.get_bool("tokenizer.ggml.add_bos_token")), true);
  EXPECT_EQ(must(gguf.get_bool("no.such.key")), std::nullopt);
  EXPECT_EQ(*must(gguf.get_strings("tokenizer.ggml.tokens")), (std::vector<std::string_view>{"a", "",
                                                                                             "\xc4\xa0"
                                                                                             "b"}));
  EXPECT_EQ(*must(gguf.get_integers("tokenizer.ggml.token_type")), (std::vector<int64_t>{1, 3, 1}));
  EXPECT_EQ(gguf.get_integer("tokenizer.ggml.tokens").error().sentence(),
            "GGUF field \"tokenizer.ggml.tokens\" must be a whole number, but it is an array of 3 string.");
  const TensorInfo* weight = model->find("weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, (std::vector<uint64_t>{2, 32}));
  EXPECT_EQ(weight->type, DType::kQ8_0);
  EXPECT_EQ(model->find("wait"), nullptr);
  EXPECT_TRUE(model->mapped(*weight).empty());
  EXPECT_EQ(must(run_now(model->read_tensor(*weight)))[67], 67);
  EXPECT_EQ(must(run_now(model->read_tensor(*model->find("norm0")))), std::vector<uint8_t>(12, 7));
}

TEST(Checkpoint, ReadsSplitGguf) {
  const Files files = {{"m-00001-of-00002.gguf", small_gguf(0, 2, "a")},
                       {"m-00002-of-00002.gguf", small_gguf(1, 2, "b")}};
  const auto model = must(open_in_memory(files));
  EXPECT_EQ(model->find("b")->file, 1u);
  EXPECT_EQ(model->file_count(), 2u);
  EXPECT_EQ(checkpoint_refusal(files, "m-00002-of-00002.gguf"),
            "model is a part of a model split into 2 files; name the first one, m-00001-of-00002.gguf.");
  EXPECT_EQ(checkpoint_refusal({{"m-00001-of-00002.gguf", small_gguf(0, 2)}}),
            "File m-00002-of-00002.gguf of model is missing.");
}

// As llama.cpp's converter writes Gemma 4: of each expert its gates, then its ups.
TEST(Checkpoint, SplitsGatesAndUpsOfExpertsInGguf) {
  GgufHeader header;
  header.add_tensor("blk.0.ffn_gate_up_exps.weight", DType::kF32, {2, 4, 3});
  std::vector<uint8_t> bytes = header.build();
  const size_t begin = bytes.size();
  bytes.resize(header.file_bytes());
  for (uint32_t i = 0; i < 24; ++i) {
    const float number = static_cast<float>(i);
    std::memcpy(&bytes[begin + i * sizeof(float)], &number, sizeof(float));
  }
  uint64_t bytes_read = 0;
  auto files =
      std::make_unique<MemoryFileSet>(MemoryFileSet::Files{{"m.gguf", bytes}}, "m.gguf", &bytes_read);
  const auto model = must(run_now(open_checkpoint(std::move(files))));
  EXPECT_EQ(model->find("blk.0.ffn_gate_up_exps.weight"), nullptr);
  const std::pair<const char*, std::vector<float>> kParts[] = {
      {"gate", {0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17}},
      {"up", {6, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23}}};
  for (const auto& [part, wanted] : kParts) {
    const TensorInfo* tensor = model->find(std::string("blk.0.ffn_") + part + "_exps.weight");
    ASSERT_TRUE(tensor);
    EXPECT_EQ(tensor->shape, (std::vector<uint64_t>{2, 2, 3}));
    const std::vector<uint8_t> got = must(run_now(model->read_tensor(*tensor)));
    ASSERT_EQ(got.size(), wanted.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size()), 0) << part;
  }
}

TEST(Checkpoint, ReadsHeadersOnly) {
  GgufHeader header;
  header.add_string("general.architecture", "llama");
  header.add_tensor("t", DType::kF32, {1024, 4096});
  std::vector<uint8_t> bytes = header.build();
  bytes.resize(header.file_bytes());
  uint64_t bytes_read = 0;
  must(open_in_memory({{"m.gguf", bytes}}, "m.gguf", &bytes_read));
  EXPECT_LE(bytes_read, (1u << 20) + 2 * kRecogniseBytes);  // of 16 MiB
}

TEST(Checkpoint, ReadsHuggingFaceFolders) {
  const auto config = bytes_of_text(R"({"model_type": "llama"})");
  const auto single =
      must(open_in_memory({{"config.json", config}, {"model.safetensors", small_safetensors({"a", "b"})}}));
  EXPECT_EQ(single->kind(), Checkpoint::Kind::kHuggingFace);
  EXPECT_EQ(single->tensors().size(), 2u);
  EXPECT_EQ(*must(get_string(single->config(), "model_type")), "llama");
  EXPECT_EQ(must(run_now(single->read_text("tokenizer.json"))), std::nullopt);
  EXPECT_EQ(must(run_now(single->read_text("config.json"))), R"({"model_type": "llama"})");
  EXPECT_EQ(must(run_now(single->read_tensor(*single->find("b")))),
            (std::vector<uint8_t>{0, 1, 2, 3, 4, 5, 6, 7}));

  Files sharded = {{"config.json", config},
                   {"1.safetensors", small_safetensors({"a"})},
                   {"2.safetensors", small_safetensors({"b"})},
                   {"model.safetensors.index.json",
                    bytes_of_text(R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})")}};
  EXPECT_EQ(must(open_in_memory(sharded))->find("b")->file, 1u);
  EXPECT_EQ(must(open_in_memory(sharded, "2.safetensors"))->find("a")->file,
            0u);  // one shard names the whole model
  sharded["2.safetensors"] = small_safetensors({"c"});
  EXPECT_NE(checkpoint_refusal(sharded).find(
                "places tensor \"b\" in 2.safetensors, but that file does not hold it"),
            std::string::npos);
  sharded["2.safetensors"] = small_safetensors({"b", "a"});
  EXPECT_EQ(checkpoint_refusal(sharded), "Tensor \"a\" is in both 1.safetensors and 2.safetensors.");
  sharded.erase("2.safetensors");
  EXPECT_EQ(checkpoint_refusal(sharded), "model has a config.json but no 2.safetensors.");
}

std::vector<uint8_t> safetensors_with(const std::vector<std::string>& names,
                                      const std::vector<std::pair<std::string, std::string>>& metadata) {
  const std::vector<uint8_t> data(8);
  std::vector<SafetensorsItem> items;
  for (const std::string& name : names) items.push_back({name, DType::kF32, {2}, data});
  MemorySink sink;
  EXPECT_TRUE(write_safetensors(items, metadata, sink));
  return sink.bytes();
}

constexpr const char* kTiedConfig =
    R"({"model_type": "llama", "tie_word_embeddings": true, "hidden_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "intermediate_size": 4, "vocab_size": 3})";

// safetensors' own save_model() leaves one of two equal tensors out; some trainers do so too, without a note.
TEST(Checkpoint, ATableStoredAsTheOutputMatrixHasItsOwnName) {
  const std::vector<std::string> names = {"lm_head.weight", "model.layers.0.mlp.up_proj.weight"};
  const auto said = must(open_in_memory(
      {{"config.json", bytes_of_text(R"({"model_type": "llama"})")},
       {"model.safetensors",
        safetensors_with(names, {{"format", "pt"}, {"model.embed_tokens.weight", "lm_head.weight"}})}}));
  EXPECT_TRUE(said->find("model.embed_tokens.weight"));
  EXPECT_FALSE(said->find("lm_head.weight"));
  const auto tied = must(open_in_memory(
      {{"config.json", bytes_of_text(kTiedConfig)}, {"model.safetensors", safetensors_with(names, {})}}));
  EXPECT_TRUE(tied->find("model.embed_tokens.weight"));
  const auto untied = must(open_in_memory({{"config.json", bytes_of_text(R"({"model_type": "llama"})")},
                                           {"model.safetensors", safetensors_with(names, {})}}));
  EXPECT_TRUE(untied->find("lm_head.weight"));
}

TEST(Checkpoint, AnIndexMayNameATiedTensorThatIsInNoFile) {
  const auto with = [](const char* config, const std::vector<std::string>& stored) {
    return checkpoint_refusal(
        {{"config.json", bytes_of_text(config)},
         {"1.safetensors", safetensors_with(stored, {})},
         {"model.safetensors.index.json",
          bytes_of_text(
              R"({"weight_map": {"model.embed_tokens.weight": "1.safetensors", "lm_head.weight": "1.safetensors"}})")}});
  };
  EXPECT_EQ(with(kTiedConfig, {"model.embed_tokens.weight"}), "");
  EXPECT_EQ(with(kTiedConfig, {"lm_head.weight"}), "");
  EXPECT_NE(with(R"({"model_type": "llama"})", {"model.embed_tokens.weight"}).find("does not hold it"),
            std::string::npos);
  EXPECT_NE(with(kTiedConfig, {"model.norm.weight"}).find("does not hold it"), std::string::npos);
}

TEST(Checkpoint, AFolderWithAConfigurationAndOneGgufIsThatGguf) {
  const Files one = {
      {"config.json", bytes_of_text("{}")}, {"m.gguf", small_gguf()}, {"mmproj-m.gguf", small_gguf()}};
  EXPECT_EQ(must(open_in_memory(one))->kind(), Checkpoint::Kind::kGguf);
  Files two = one;
  two["n.gguf"] = small_gguf();
  EXPECT_EQ(checkpoint_refusal(two), "Folder model holds 2 GGUF files; name a single file, such as m.gguf.");
  Files other = one;
  other["consolidated.safetensors"] = small_safetensors({"a"});
  EXPECT_EQ(checkpoint_refusal(other),
            "model has a config.json but no model.safetensors; it also holds m.gguf, which may be named.");
}

TEST(Checkpoint, AModuleWhoseFolderIsMissingIsNamed) {
  EXPECT_EQ(checkpoint_refusal(
                {{"config.json", bytes_of_text(R"({"model_type": "bert"})")},
                 {"model.safetensors", small_safetensors({"a"})},
                 {"modules.json", bytes_of_text(R"([{"type": "x.Pooling", "path": "1_Pooling"}])")}}),
            "modules.json of model names 1_Pooling, but there is no 1_Pooling/config.json; \"doppler pull "
            "--replace\" "
            "fetches it.");
}

// As llama.cpp ships vocabularies: tokenize and inspect read them, nothing runs them.
TEST(Checkpoint, AVocabularyAloneOpensAndDoesNotRun) {
  GgufHeader header;
  header.add_string("general.architecture", "llama");
  const auto vocabulary = must(open_in_memory({{"v.gguf", header.build()}}, "v.gguf"));
  EXPECT_TRUE(vocabulary->tensors().empty());
  EXPECT_EQ(read_config(*vocabulary).error().sentence(),
            "model holds no tensors: it is only a vocabulary or metadata.");
}

TEST(Checkpoint, SaysWhatIsNoModel) {
  const auto text = [](std::string_view content) { return Files{{"x", bytes_of_text(content)}}; };
  EXPECT_EQ(checkpoint_refusal(text(""), "x"), "x is empty.");
  EXPECT_NE(
      checkpoint_refusal(text("version https://git-lfs.github.com/spec/v1\n"), "x").find("a Git LFS pointer"),
      std::string::npos);
  EXPECT_NE(checkpoint_refusal(text("\n <!DOCTYPE html>"), "x").find("a web page"), std::string::npos);
  EXPECT_NE(checkpoint_refusal(text("PK\x03\x04zip"), "x").find("PyTorch"), std::string::npos);
  EXPECT_NE(checkpoint_refusal(text("{\"a\": 1}"), "x").find("a JSON text; name the folder"),
            std::string::npos);
  EXPECT_NE(checkpoint_refusal(text(std::string(100, '\0')), "x").find("unfinished download"),
            std::string::npos);
  EXPECT_NE(checkpoint_refusal(text("Hello, world."), "x").find("begins neither as GGUF nor as safetensors"),
            std::string::npos);
  EXPECT_EQ(checkpoint_refusal({}),
            "model holds no model: neither config.json nor a .gguf file nor manifest.json.");
  EXPECT_EQ(checkpoint_refusal({{"a.gguf", small_gguf()}, {"b.gguf", small_gguf()}}),
            "Folder model holds 2 GGUF files; name a single file, such as a.gguf.");
  EXPECT_NE(checkpoint_refusal({{"config.json", bytes_of_text("{}")}, {"pytorch_model.bin", {1}}})
                .find("only PyTorch weights"),
            std::string::npos);
  EXPECT_EQ(checkpoint_refusal({{"config.json", bytes_of_text("[]")}}),
            "config.json must hold a JSON object, but it is array.");
  EXPECT_EQ(checkpoint_refusal({{"a.safetensors", small_safetensors({"t"})}}, "a.safetensors"),
            "There is no config.json beside model, so its architecture is unknown.");
}

class NativeFiles : public testing::Test {
 protected:
  NativeFiles()
      : folder_(std::filesystem::temp_directory_path() /
                ("doppler_formats_" + std::to_string(process_id()))) {
    std::filesystem::create_directories(folder_);
  }
  ~NativeFiles() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::vector<uint8_t>& bytes) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(NativeFiles, MapsFilesAndFolders) {
  const std::string path = write("m.gguf", small_gguf());
  for (const std::string& named : {path, folder_.string()}) {
    const auto model = must(run_now(open_checkpoint(must(open_file_set(named)))));
    const TensorInfo& weight = *model->find("weight");
    ASSERT_EQ(model->mapped(weight).size(), 68u);
    EXPECT_EQ(model->mapped(weight)[67], 67);
  }
}

TEST_F(NativeFiles, ExplainsWhatCannotBeOpened) {
  EXPECT_EQ(open_file_set("/no/such/model").error().sentence(),
            "There is no file or folder \"/no/such/model\".");
  EXPECT_EQ(open_file_set("/dev/null").error().sentence(), "/dev/null is neither a file nor a folder.");
  const std::string empty = write("empty.gguf", {});
  EXPECT_EQ(run_now(open_checkpoint(must(open_file_set(empty)))).error().sentence(), empty + " is empty.");
  auto set = must(open_file_set(folder_.string()));
  EXPECT_NE(run_now(set->open("../x")).error().sentence().find("not a plain file name"), std::string::npos);
  EXPECT_EQ(must(run_now(set->open("nothing"))), nullptr);
}

TEST(Gguf, LargeVocabularyParsesFast) {
  std::vector<std::string> tokens(256 * 1024);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = "token " + std::to_string(i);
  GgufHeader header;
  header.add_strings("tokenizer.ggml.tokens", tokens);
  const std::vector<uint8_t> bytes = header.build();
  const auto begin = std::chrono::steady_clock::now();
  const auto parse = must(parse_gguf(bytes, bytes.size(), "x"));
  const auto strings = must(parse.file->get_strings("tokenizer.ggml.tokens"));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(strings->back(), tokens.back());
  EXPECT_LT(took, std::chrono::milliseconds(100));
}

TEST(TowerPadding, AnyPartOfPaddedRowsIsThatOfTheWhole) {
  FuzzBytes file({9, 9, 1, 2, 3, 4, 5, 6, 9});
  const auto source = padded_rows(file, 2, 2, 3, 5);
  const std::vector<uint8_t> whole = {1, 2, 3, 0, 0, 4, 5, 6, 0, 0};
  ASSERT_EQ(source->size(), whole.size());
  for (size_t first = 0; first <= whole.size(); ++first) {
    for (size_t count = 0; first + count <= whole.size(); ++count) {
      const auto begin = whole.begin() + static_cast<ptrdiff_t>(first);
      EXPECT_EQ(must(run_now(source->read(first, count))),
                std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(count)))
          << first << " " << count;
    }
  }
  EXPECT_FALSE(run_now(source->read(8, 3)));
  EXPECT_EQ(padded_feed_forward(4304), 4352u);
  EXPECT_EQ(padded_feed_forward(4352), 4352u);
}

}  // namespace
}  // namespace doppler::formats
