// The layer that predicts the token after the next one, through files: tiny checkpoints of
// tests/golden/make_next_layers.py from the folder to GGUF and RDRR and back, and the sentences about checkpoints that
// lack a part.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/json.h"
#include "formats/architectures/tensor_names.h"
#include "formats/convert/convert_native.h"
#include "formats/file_headers.h"
#include "formats/file_set_native.h"
#include "formats/quant/codec.h"
#include "formats/rdrr/test_models.h"
#include "formats/safetensors/safetensors.h"
#include "formats/safetensors/safetensors_writer.h"
#include "formats/synth/synthetic_model.h"
#include "formats/test_helpers.h"

namespace doppler::formats {
namespace {

// Small enough for every case's vocabulary.
constexpr const char* kTokenizer = R"({"added_tokens": [{"id": 0, "content": "<unk>", "special": true}],
  "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, "pre_tokenizer": null,
  "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true,
            "vocab": {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "ab": 4}, "merges": [["a", "b"]]}})";

std::unique_ptr<Checkpoint> open(const std::string& path) {
  return must(run_now(open_checkpoint(must(open_file_set(path)))));
}

Json config_in(const std::string& folder) {
  const std::vector<uint8_t> bytes = read_file(folder + "/config.json");
  return must(parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "config.json"));
}

class NextLayerFiles : public testing::Test {
 protected:
  // The case as a folder "hf" with a tokenizer, which GGUF cannot be without.
  void copy(const char* name) {
    std::filesystem::create_directory(home_ / "hf");
    for (const char* file : {"config.json", "model.safetensors"}) {
      std::filesystem::copy(std::string(FAMILIES_NEXT_DIR "/") + name + "/" + file,
                            home_ / (std::string("hf/") + file));
    }
    std::ofstream(home_ / "hf/tokenizer.json") << kTokenizer;
  }

  // The folder's tensors again, each as `change` makes it: false leaves it out.
  void rewrite(const std::function<bool(TensorInfo&)>& change) {
    std::vector<std::vector<uint8_t>> bytes;
    std::vector<TensorInfo> kept;
    {
      uint64_t ignored = 0;  // as stored: a Checkpoint has experts as one
      MemorySource source("model.safetensors", read_file(home_ / "hf/model.safetensors"), &ignored);
      const SafetensorsFile file = must(run_now(read_safetensors(source)));
      for (const SafetensorsTensor& tensor : file.tensors) {
        TensorInfo info{tensor.name, tensor.type, tensor.shape, 0, tensor.offset, tensor.bytes};
        if (!change(info)) continue;
        bytes.push_back(must(run_now(source.read(tensor.offset, tensor.bytes))));
        kept.push_back(std::move(info));
      }
    }
    std::vector<SafetensorsItem> items;
    for (size_t i = 0; i < kept.size(); ++i)
      items.push_back({kept[i].name, kept[i].type, kept[i].shape, bytes[i]});
    MemorySink sink;
    ASSERT_TRUE(write_safetensors(items, {}, sink));
    std::ofstream(home_ / "hf/model.safetensors", std::ios::binary)
        .write(reinterpret_cast<const char*>(sink.bytes().data()),
               static_cast<std::streamsize>(sink.bytes().size()));
  }
  void set_field(const char* key, const Json& value) const {
    Json json = config_in(home_ / "hf");
    json[key] = value;
    std::ofstream(home_ / "hf/config.json") << to_text(json);
  }

  Result<ConvertReport> convert(const char* from, const char* to, const char* mix = kKeepTypes) const {
    ConvertOptions options;
    options.to = std::string_view(to).ends_with(".gguf") ? OutputKind::kGguf : OutputKind::kRdrr;
    options.quantize = mix;
    if (std::string_view(from) == "hf") options.name = "model";
    return convert_model(*open(home_ / from), home_ / to, options);
  }
  ModelConfig config(const char* path) const { return must(read_config(*open(home_ / path))); }
  std::string refusal() const {
    const auto done = convert("hf", "refused.gguf");
    return done ? "" : done.error().sentence();
  }

  TemporaryFolder home_;
};

class NextLayer : public NextLayerFiles, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { copy(GetParam()); }
};

std::vector<PlacedTensor> next_tensors(const ModelConfig& config) {
  std::vector<PlacedTensor> out = tensors_of(config);
  std::erase_if(out, [&](const PlacedTensor& tensor) {
    return !is_in_layer(tensor.row->id) || !is_next_layer(config, tensor.layer);
  });
  return out;
}

std::vector<float> numbers_of(const Checkpoint& model, const TensorInfo& tensor) {
  const std::vector<uint8_t> bytes = must(run_now(model.read_tensor(tensor)));
  std::vector<float> out(bytes.size() / dtype_info(tensor.type).block_bytes);
  EXPECT_TRUE(dequantise(tensor.type, bytes.data(), out.data(), out.size()));
  return out;
}

TEST_P(NextLayer, IsOneMoreLayerOfAttention) {
  const auto model = open(home_ / "hf");
  const ModelConfig c = must(read_config(*model));
  const uint32_t next = c.n_layers;
  EXPECT_EQ(c.next_layers, 1u);
  EXPECT_TRUE(is_next_layer(c, next));
  EXPECT_FALSE(is_next_layer(c, next - 1) || is_next_layer(c, next + 1));
  EXPECT_TRUE(has_mixer(c, next) && has_feed_forward(c, next) && has_cache(c, next));
  EXPECT_TRUE(is_rotated_layer(c, next));
  EXPECT_FALSE(is_recurrent_layer(c, next) || is_sliding_layer(c, next));
  EXPECT_EQ(cache_layer(c, next), next);
  EXPECT_EQ(is_moe_layer(c, next), c.moe.n_experts != 0);
  EXPECT_EQ(head_dim_of(c, next), c.head_dim);
  EXPECT_EQ(kv_heads_of(c, next), c.n_kv_heads);
  EXPECT_EQ(ffn_dim_of(c, next), c.ffn_dim);
  for (const PlacedTensor& tensor : next_tensors(c)) {
    const StoredTensor stored = stored_tensor(c, tensor.row->id, next);
    EXPECT_TRUE(stored.name.starts_with("mtp.")) << stored.name;
    const TensorInfo* info = model->find(stored.weight_name());
    ASSERT_TRUE(info) << stored.name;
    std::vector<uint64_t> shape = stored.shape;
    shape[0] *= stored.parts;
    EXPECT_TRUE(is_same_shape(info->shape, shape)) << stored.name;
    EXPECT_EQ(stored.offset, tensor.row->is_norm ? 1 : 0) << stored.name;
  }
}

TEST_P(NextLayer, StaysTheSameInEveryFormat) {
  must(convert("hf", "direct.gguf"));
  must(convert("hf", "folder"));
  must(convert("folder", "indirect.gguf"));
  EXPECT_EQ(read_file(home_ / "direct.gguf"), read_file(home_ / "indirect.gguf"));
  must(convert("direct.gguf", "again"));
  must(convert("again", "again.gguf"));
  EXPECT_EQ(read_file(home_ / "direct.gguf"), read_file(home_ / "again.gguf"));

  const auto hf = open(home_ / "hf");
  const ModelConfig wanted = must(read_config(*hf));
  for (const char* path : {"direct.gguf", "folder", "again"}) {
    SCOPED_TRACE(path);
    const auto model = open(home_ / path);
    const ModelConfig got = must(read_config(*model));
    EXPECT_EQ(got.n_layers, wanted.n_layers);
    EXPECT_EQ(got.next_layers, 1u);
    const std::vector<PlacedTensor> tensors = next_tensors(got);
    ASSERT_EQ(tensors.size(), next_tensors(wanted).size());
    for (const PlacedTensor& tensor : tensors) {
      const StoredTensor from = stored_tensor(wanted, tensor.row->id, tensor.layer);
      const StoredTensor to = stored_tensor(got, tensor.row->id, tensor.layer);
      const TensorInfo *source = hf->find(from.weight_name()), *made = model->find(to.weight_name());
      ASSERT_TRUE(source && made) << to.name;
      std::vector<float> numbers = numbers_of(*hf, *source), same = numbers_of(*model, *made);
      for (float& number : numbers) number += from.offset;
      for (float& number : same) number += to.offset;
      EXPECT_EQ(numbers, same) << to.name;
    }
  }
  const auto gguf = open(home_ / "direct.gguf");
  const std::string prefix = must(gguf->gguf()->get_string("general.architecture")).value() + ".";
  EXPECT_EQ(must(gguf->gguf()->get_integer(prefix + "block_count")), wanted.n_layers + 1);
  EXPECT_EQ(must(gguf->gguf()->get_integer(prefix + "nextn_predict_layers")), 1);
  for (const char* name : {"nextn.eh_proj.weight", "nextn.enorm.weight", "nextn.hnorm.weight",
                           "nextn.shared_head_norm.weight", "attn_q.weight"}) {
    EXPECT_TRUE(gguf->find(format_text("blk.%u.%s", wanted.n_layers, name))) << name;
  }
  EXPECT_EQ(gguf->find(format_text("blk.%u.nextn.eh_proj.weight", wanted.n_layers))->shape,
            (std::vector<uint64_t>{wanted.hidden_dim, 2 * wanted.hidden_dim}));
}

// Rows of these sizes hold only blocks of 32, so that mixes of larger blocks take other types.
TEST_P(NextLayer, IsQuantisedAsTheLastLayerOnEveryWay) {
  for (const char* mix : {"q8_0", "q4_k_m"}) {
    SCOPED_TRACE(mix);
    const std::string file = std::string(mix) + ".gguf";
    must(convert("hf", file.c_str(), mix));
    must(convert("hf", mix, mix));
    const auto gguf = open(home_ / file), rdrr = open(home_ / mix);
    const ModelConfig named = must(read_config(*gguf)), c = must(read_config(*rdrr));
    for (const PlacedTensor& tensor : next_tensors(named)) {
      const std::string name = tensor_name(named, tensor.row->id, tensor.layer);
      const bool is_matrix = !tensor.row->is_norm && tensor.row->id != TensorId::kRouter &&
                             tensor.row->id != TensorId::kSharedRouter;
      const TensorInfo* info = gguf->find(name);
      const TensorInfo* same = rdrr->find(tensor_name(c, tensor.row->id, tensor.layer));
      ASSERT_TRUE(info && same) << name;
      EXPECT_EQ(same->type, info->type) << name;
      EXPECT_EQ(dtype_info(info->type).quantised, is_matrix) << name;
      if (!is_matrix) continue;
      EXPECT_EQ(must(run_now(gguf->read_tensor(*info))), must(run_now(rdrr->read_tensor(*same)))) << name;
    }
    const uint32_t last = named.n_layers;
    EXPECT_EQ(gguf->find(tensor_name(named, TensorId::kV, last))->type, DType::kQ8_0);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, NextLayer,
                         testing::Values("qwen3_5_mtp", "qwen3_next_mtp", "qwen3_5_moe_mtp",
                                         "qwen3_5_mtp_agreeing"),
                         [](const auto& test) { return std::string(test.param); });

using NextLayerParts = NextLayerFiles;

TEST_F(NextLayerParts, LoadsBehindTheOutputMatrix) {
  copy("qwen3_5_mtp_agreeing");
  must(convert("hf", "folder"));
  const auto model = open(home_ / "folder");
  const std::span<const TensorInfo> tensors = model->tensors();
  const auto first = std::ranges::find_if(tensors, [](const auto& t) { return t.name.starts_with("mtp."); });
  const auto rest = std::ranges::subrange(first, tensors.end());
  EXPECT_TRUE(std::ranges::all_of(rest, [](const auto& t) { return t.name.starts_with("mtp."); }));
  EXPECT_EQ((first - 1)->name, "lm_head.weight");
}

TEST_F(NextLayerParts, AMissingTensorIsNamed) {
  for (const char* missing : {"mtp.fc.weight", "mtp.norm.weight", "mtp.layers.0.self_attn.k_norm.weight",
                              "mtp.layers.0.mlp.up_proj.weight"}) {
    copy("qwen3_5_mtp");
    rewrite([&](const TensorInfo& tensor) { return tensor.name != missing; });
    EXPECT_EQ(config("hf").next_layers, 1u) << missing;
    EXPECT_NE(refusal().find(std::string("has no tensor \"") + missing + "\"."), std::string::npos)
        << refusal();
    std::filesystem::remove_all(home_ / "hf");
  }
}

TEST_F(NextLayerParts, ATensorOfAnotherShapeIsNamed) {
  copy("qwen3_5_mtp");
  rewrite([&](TensorInfo& tensor) {
    if (tensor.name == "mtp.fc.weight") tensor.shape = {128, 64};
    return true;
  });
  EXPECT_EQ(refusal(),
            "Tensor \"mtp.fc.weight\" has the shape [ 128 64 ], but config.json makes it [ 64 128 ].");
}

TEST_F(NextLayerParts, WithoutItsTensorsThereIsNone) {
  copy("qwen3_5_mtp");
  rewrite([](const TensorInfo& tensor) { return !tensor.name.starts_with("mtp."); });
  EXPECT_EQ(config("hf").next_layers, 0u);
  must(convert("hf", "out.gguf"));
  EXPECT_FALSE(open(home_ / "out.gguf")->gguf()->find("qwen35.nextn_predict_layers"));
  EXPECT_EQ(config("out.gguf").n_layers, 4u);
}

TEST_F(NextLayerParts, OneThatIsNotReadIsLeftOut) {
  const std::pair<const char*, Json> kFields[] = {
      {"mtp_use_dedicated_embeddings", true}, {"mtp_num_hidden_layers", 0}, {"mtp_num_hidden_layers", 2}};
  for (const auto& [key, value] : kFields) {
    copy("qwen3_5_mtp");
    set_field(key, value);
    EXPECT_EQ(config("hf").next_layers, 0u) << key;
    const ConvertReport report = must(convert("hf", "out.gguf"));
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_NE(report.notes[0].find("15 tensors were left out"), std::string::npos) << report.notes[0];
    EXPECT_EQ(config("out.gguf").next_layers, 0u);
    std::filesystem::remove(home_ / "out.gguf");
    std::filesystem::remove_all(home_ / "hf");
  }
  copy("qwen3_5_mtp");
  rewrite([](TensorInfo& tensor) {
    if (tensor.name == "mtp.norm.weight") tensor.name = "mtp.embed_tokens.weight";
    return true;
  });
  EXPECT_EQ(config("hf").next_layers, 0u);
}

// The text part of a model that also sees has its layers elsewhere, but this one where it was.
TEST_F(NextLayerParts, OfAModelThatSeesIsFoundBesideItsTextModel) {
  copy("qwen3_5_mtp");
  rewrite([](TensorInfo& tensor) {
    if (tensor.name.starts_with("model.")) tensor.name.insert(6, "language_model.");
    return true;
  });
  Json text = config_in(home_ / "hf");
  std::ofstream(home_ / "hf/config.json") << to_text(Json{{"model_type", "qwen3_5"}, {"text_config", text}});
  const ModelConfig c = config("hf");
  EXPECT_EQ(c.next_layers, 1u);
  EXPECT_EQ(tensor_name(c, TensorId::kQ, 0), "model.language_model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(tensor_name(c, TensorId::kQ, 4), "mtp.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(tensor_name(c, TensorId::kNextProjection, 4), "mtp.fc.weight");
}

// As llama.cpp writes it: block_count has the layer, nextn_predict_layers says so.
TEST_F(NextLayerParts, SynthesisHasItWhereConfigSaysSo) {
  copy("qwen3_5_mtp");
  auto model = must(SyntheticModel::make(home_ / "hf/config.json:q8_0"));
  const auto synthetic = must(run_now(open_checkpoint(synthetic_file_set(std::move(model)))));
  const ModelConfig c = must(read_config(*synthetic));
  EXPECT_EQ(c.n_layers, 4u);
  EXPECT_EQ(c.next_layers, 1u);
  for (const PlacedTensor& tensor : next_tensors(c)) {
    EXPECT_TRUE(synthetic->find(tensor_name(c, tensor.row->id, 4))) << tensor_label(tensor.row->id, 4);
  }
  EXPECT_EQ(synthetic->find("blk.4.nextn.eh_proj.weight")->type, DType::kQ8_0);
  set_field("mtp_num_hidden_layers", 0);
  auto plain = must(SyntheticModel::make(home_ / "hf/config.json:q8_0"));
  EXPECT_EQ(
      must(read_config(*must(run_now(open_checkpoint(synthetic_file_set(std::move(plain))))))).next_layers,
      0u);
}

}  // namespace
}  // namespace doppler::formats
