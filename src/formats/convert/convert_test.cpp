// Conversion of a tiny Hugging Face llama folder: metadata, tokenizer, row order of q and k, and refusals.
#include <gtest/gtest.h>

#include "formats/architectures/tensor_names.h"
#include "formats/checkpoint.h"
#include "formats/convert/convert_native.h"
#include "formats/convert/importance.h"
#include "formats/file_set_native.h"
#include "formats/quant/codec.h"
#include "formats/rdrr/test_models.h"
#include "formats/safetensors/safetensors_writer.h"
#include "formats/test_helpers.h"

namespace doppler::formats {
namespace {

using Files = MemoryFileSet::Files;

constexpr const char* kConfig = R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 32,
  "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "intermediate_size": 64, "vocab_size": 6,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "tie_word_embeddings": true, "bos_token_id": 4,
  "eos_token_id": [5, 0], "rope_theta": 5000.0,
  "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                   "original_max_position_embeddings": 16}})";

constexpr const char* kTokenizer = R"({"added_tokens": [{"id": 4, "content": "<s>", "special": true},
    {"id": 3, "content": "<x>", "special": false}],
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex":
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"type": "ByteLevel"}]},
  "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}]},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})";

// Element i of a tensor is i / 8, so that a row's origin can be told from its values.
Files tiny_model() {
  const struct {
    const char* name;
    std::vector<uint64_t> shape;
  } kTensors[] = {{"model.embed_tokens.weight", {6, 32}},
                  {"model.layers.0.input_layernorm.weight", {32}},
                  {"model.layers.0.self_attn.q_proj.weight", {16, 32}},
                  {"model.layers.0.self_attn.k_proj.weight", {8, 32}},
                  {"model.layers.0.self_attn.v_proj.weight", {8, 32}},
                  {"model.layers.0.self_attn.o_proj.weight", {32, 16}},
                  {"model.layers.0.post_attention_layernorm.weight", {32}},
                  {"model.layers.0.mlp.gate_proj.weight", {64, 32}},
                  {"model.layers.0.mlp.up_proj.weight", {64, 32}},
                  {"model.layers.0.mlp.down_proj.weight", {32, 64}},
                  {"model.norm.weight", {32}}};
  std::vector<float> numbers(64 * 64);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) / 8;
  std::vector<SafetensorsItem> items;
  for (const auto& tensor : kTensors) {
    uint64_t count = 1;
    for (const uint64_t dim : tensor.shape) count *= dim;
    items.push_back({tensor.name,
                     DType::kF32,
                     tensor.shape,
                     {reinterpret_cast<const uint8_t*>(numbers.data()), 4 * count}});
  }
  MemorySink weights;
  EXPECT_TRUE(write_safetensors(items, {}, weights));
  return {{"config.json", bytes_of_text(kConfig)},
          {"tokenizer.json", bytes_of_text(kTokenizer)},
          {"tokenizer_config.json", bytes_of_text(R"({"chat_template": "{{ messages }}"})")},
          {"generation_config.json", bytes_of_text(R"({"temperature": 0.5})")},
          {"model.safetensors", weights.bytes()}};
}

std::unique_ptr<Checkpoint> open(Files files, std::string main_file = "") {
  static uint64_t ignored = 0;
  return must(
      run_now(open_checkpoint(std::make_unique<MemoryFileSet>(std::move(files), main_file, &ignored))));
}

// The output file's bytes.
Result<std::vector<uint8_t>> convert(const Files& files, ConvertOptions options) {
  const TemporaryFolder home;
  const auto model = open(files);
  if (options.name.empty()) options.name = "tiny";
  DP_TRY(const ConvertReport report, convert_model(*model, home / "m.gguf", options));
  EXPECT_EQ(report.resumed_bytes, 0u);
  EXPECT_FALSE(std::filesystem::exists(home / "m.gguf.part"));
  EXPECT_FALSE(std::filesystem::exists(home / "m.gguf.part.journal"));
  return read_file(home / "m.gguf");
}

ConvertOptions with_types(const std::string& mix) {
  ConvertOptions options;
  options.quantize = mix;
  return options;
}

std::vector<float> values_of(const Checkpoint& model, const char* name) {
  const auto bytes = must(run_now(model.read_tensor(*model.find(name))));
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Convert, TemplatesKeepTheirNames) {
  Files files = tiny_model();
  files["tokenizer_config.json"] = bytes_of_text(
      R"({"chat_template": [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]})");
  const auto model = open({{"m.gguf", must(convert(files, {}))}}, "m.gguf");
  EXPECT_EQ(must(model->gguf()->get_string("tokenizer.chat_template")), "plain");
  EXPECT_EQ(must(model->gguf()->get_string("tokenizer.chat_template.tool_use")), "tools");
}

TEST(Convert, TinyModelKeepsItsMeaning) {
  const auto model = open({{"m.gguf", must(convert(tiny_model(), {}))}}, "m.gguf");
  const GgufFile& gguf = *model->gguf();
  EXPECT_EQ(must(gguf.get_string("general.name")), "tiny");
  EXPECT_EQ(must(gguf.get_integer("llama.attention.key_length")), 8);
  EXPECT_EQ(must(gguf.get_number("llama.rope.freq_base")), 5000);
  EXPECT_EQ(must(gguf.get_string("tokenizer.ggml.pre")), "llama-bpe");
  EXPECT_EQ(*must(gguf.get_strings("tokenizer.ggml.tokens")),
            (std::vector<std::string_view>{"a", "b", "ab", "<x>", "<s>", "[PAD5]"}));
  EXPECT_EQ(*must(gguf.get_integers("tokenizer.ggml.token_type")), (std::vector<int64_t>{1, 1, 1, 4, 3, 5}));
  EXPECT_EQ(*must(gguf.get_strings("tokenizer.ggml.merges")), (std::vector<std::string_view>{"a b"}));
  EXPECT_EQ(must(gguf.get_integer("tokenizer.ggml.bos_token_id")), 4);
  EXPECT_EQ(must(gguf.get_integer("tokenizer.ggml.eos_token_id")), 5);
  EXPECT_EQ(must(gguf.get_bool("tokenizer.ggml.add_bos_token")), true);
  EXPECT_EQ(must(gguf.get_string("tokenizer.chat_template")), "{{ messages }}");
  EXPECT_EQ(must(gguf.get_number("general.sampling.temp")), 0.5);
  EXPECT_EQ(values_of(*model, "rope_freqs.weight").size(), 4u);

  // Heads of 8 rows: rows 0 4 1 5 2 6 3 7 of each head, in that order.
  const std::vector<float> q = values_of(*model, "blk.0.attn_q.weight");
  const int order[] = {0, 4, 1, 5, 2, 6, 3, 7};
  for (size_t row = 0; row < 16; ++row) {
    const size_t from = row / 8 * 8 + static_cast<size_t>(order[row % 8]);
    EXPECT_EQ(q[32 * row], static_cast<float>(from * 32) / 8) << "row " << row;
  }
  EXPECT_EQ(values_of(*model, "blk.0.attn_v.weight")[32], 32.0f / 8);
  EXPECT_EQ(values_of(*model, "output_norm.weight")[31], 31.0f / 8);
}

TEST(Convert, QuantisesMatricesAndKeepsNorms) {
  const auto model = open({{"m.gguf", must(convert(tiny_model(), with_types("q4_0")))}}, "m.gguf");
  EXPECT_EQ(model->find("blk.0.ffn_down.weight")->type, DType::kQ4_0);
  EXPECT_EQ(model->find("blk.0.attn_output.weight")->type, DType::kF16) << "16 columns are no block";
  EXPECT_EQ(model->find("blk.0.ffn_norm.weight")->type, DType::kF32);
  EXPECT_EQ(must(model->gguf()->get_integer("general.file_type")), 2);
}

TEST(Convert, ImportanceFindsTensorsByTheirGgufNames) {
  EXPECT_EQ(gguf_name_of("model.layers.12.mlp.down_proj.weight"), "blk.12.ffn_down.weight");
  EXPECT_EQ(gguf_name_of("model.language_model.layers.0.self_attn.o_proj.weight"),
            "blk.0.attn_output.weight");
  EXPECT_EQ(gguf_name_of("language_model.lm_head.weight"), "output.weight");
  EXPECT_EQ(gguf_name_of("model.embed_tokens.weight"), "token_embd.weight");
  for (const char* other : {"model.norm.weight", "model.layers.0.input_layernorm.weight", "model.layers.0",
                            "model.layers..mlp.down_proj.weight", "blk.0.attn_q.weight", ""}) {
    EXPECT_EQ(gguf_name_of(other), "") << other;
  }
  Importance importance{{{"blk.0.ffn_down.weight", std::vector<float>(64, 2.0f)}}, "i.dat"};
  const TensorInfo source{"model.layers.0.mlp.down_proj.weight", DType::kF32, {32, 64}, 0, 0, 0};
  Conversion conversion;
  conversion.tensors.push_back({.name = source.name,
                                .type = DType::kQ4_0,
                                .shape = source.shape,
                                .parts = {{.source = &source}},
                                .matrix = true});
  ASSERT_TRUE(attach_importance(importance, conversion));
  EXPECT_EQ(conversion.tensors[0].importance, importance.columns.begin()->second);
}

TEST(Convert, RefusesWhatItCannotKeep) {
  const auto refusal = [](const char* file, std::string_view what, std::string_view instead) {
    Files files = tiny_model();
    std::string text(files[file].begin(), files[file].end());
    text.replace(text.find(what), what.size(), instead);
    files[file] = bytes_of_text(text);
    const auto done = convert(files, {});
    return done ? std::string() : done.error().sentence();
  };
  EXPECT_NE(refusal("config.json", "\"llama3\"", "\"longrope\"").find("pairs rotate."), std::string::npos);
  EXPECT_EQ(
      refusal("config.json", "\"rms_norm_eps\"", "\"hidden_act\": \"gelu\", \"rms_norm_eps\""),
      "A GGUF file of architecture \"llama\" has no place for the model's activation: 3 would be read as 1.");
  EXPECT_TRUE(
      refusal("config.json", "\"llama\"", "\"t5\"")
          .starts_with("Model type \"t5\" is not supported; supported in Hugging Face folders: llama, "));
  EXPECT_EQ(refusal("config.json", "\"intermediate_size\": 64", "\"intermediate_size\": 96"),
            "Tensor \"model.layers.0.mlp.gate_proj.weight\" has the shape [ 64 32 ], but config.json makes "
            "it [ 96 32 ].");
  EXPECT_EQ(refusal("config.json", "\"hidden_size\": 32", "\"hidden_size\": 0"),
            "The hidden dimension is 0; allowed is 1 to 262144.");
  EXPECT_EQ(refusal("tokenizer.json", "\"id\": 4", "\"id\": 9"),
            "tokenizer.json gives token \"<s>\" the id 9; 0 to 5 are allowed.");
  EXPECT_NE(refusal("tokenizer.json", "1,3", "1,2").find("has no name in GGUF"), std::string::npos);
  EXPECT_NE(refusal("tokenizer.json", "\"BPE\"", "\"WordPiece\"").find("holds a WordPiece model"),
            std::string::npos);
}

}  // namespace
}  // namespace doppler::formats
