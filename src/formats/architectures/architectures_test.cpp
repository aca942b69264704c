// Rows against each other and against the readers: what the converter writes by a row is what the engine reads by it.
#include <algorithm>
#include <set>

#include "formats/architectures/rows.h"
#include "formats/architectures/test_configs.h"

namespace doppler::formats {
namespace {

// A row that does not say how its files pair the numbers of a head does not compile.
static_assert(!std::is_default_constructible_v<Required<RopePairing>>);
static_assert(!std::is_default_constructible_v<GgufRow> && !std::is_default_constructible_v<HuggingFaceRow>);
static_assert(!std::is_default_constructible_v<Architecture>);

std::vector<std::string_view> model_types() {
  std::vector<std::string_view> out;
  for (const Architecture* row : all_architectures()) {
    for (const HuggingFaceType& type : row->huggingface.model_types) out.push_back(type.model_type);
  }
  return out;
}

TEST(Architectures, AreTheFamiliesOfTheList) {
#define FAMILY(name) {#name, &rows::name},
#define FAMILY_LIKE(name, page) {#name, &rows::name},
  const std::pair<std::string_view, const Architecture*> list[] = {
#include "formats/architectures/family_list.h"
  };
  const std::span<const Architecture* const> table = all_architectures();
  ASSERT_EQ(std::size(list), table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(list[i].second, table[i]);
    EXPECT_EQ(list[i].first, table[i]->family);
  }
}

TEST_P(EveryModelType, HasTheSameNumbersAsGguf) {
  const std::pair<const char*, Json> kMore[] = {
      {"plain", Json::object()},
      {"linear", {{"rope_scaling", {{"type", "linear"}, {"factor", 2.5}}}}},
      {"llama3",
       {{"rope_scaling",
         {{"rope_type", "llama3"},
          {"factor", 8},
          {"low_freq_factor", 1},
          {"high_freq_factor", 4},
          {"original_max_position_embeddings", 64}}}}},
      {"yarn",
       {{"rope_scaling",
         {{"rope_type", "yarn"}, {"factor", 4}, {"beta_fast", 4}, {"original_max_position_embeddings", 160}}},
        {"rope_theta", 12345}}},
      {"mscale",
       {{"rope_scaling",
         {{"rope_type", "yarn"},
          {"factor", 4},
          {"mscale", 0.7},
          {"mscale_all_dim", 1.2},
          {"original_max_position_embeddings", 160}}}}},
  };
  for (const auto& [what, fields] : kMore) {
    SCOPED_TRACE(what);
    Json json = small_config(GetParam());
    for (const auto& [key, value] : fields.items()) json[key] = value;
    // Files of latents have one number for both.
    if (json.contains("kv_lora_rank") && json.contains("rope_scaling")) json["rope_scaling"]["mscale"] = 1.2;
    ModelConfig config = config_of(json);
    if (config.family == "apertus") config.xielu.assign(size_t{4} * config.n_layers, 0.25f);  // tensors
    const auto kept = check_config_kept(config, header_of(config));
    EXPECT_TRUE(kept) << kept.error().message();
    // Through a file, too, and in other words.
    const ModelConfig got = read_back(header_of(config));
    const std::string_view as_one = config.family == "mixtral"   ? "llama"  // in GGUF
                                    : config.family == "roberta" ? "bert"
                                                                 : config.family;
    EXPECT_EQ(got.family, as_one);
    EXPECT_EQ(got.n_layers, 7u);
    EXPECT_EQ(got.next_layers, config.next_layers);
    EXPECT_EQ(got.n_kv_heads, config.mla.kv_rank != 0 ? 1u : 2u);
    EXPECT_EQ(got.head_dim, config.mla.kv_rank != 0 ? 17u + 4u : 10u);
    EXPECT_EQ(got.sliding_window, config.sliding_window);
    EXPECT_EQ(got.is_sliding, config.is_sliding);
    EXPECT_EQ(got.local_rope.theta, config.local_rope.theta);
    EXPECT_EQ(got.attention_scale, config.attention_scale);
    EXPECT_EQ(got.activation, config.activation);
    EXPECT_EQ(got.tied_embeddings, config.tied_embeddings);
    EXPECT_EQ(got.rope.pairing, architecture_of(config).gguf.pairing.value);
  }
}

TEST_P(EveryModelType, NamesEachTensorOnceInBothKindsOfFile) {
  ModelConfig config = config_of(small_config(GetParam()));
  config.tied_embeddings = false;
  ModelConfig gguf = config;
  gguf.gguf_names = true;
  std::set<std::string> names, gguf_names;
  auto tensors = tensors_of(config);
  std::erase_if(tensors,
                [](const PlacedTensor& tensor) {  // within part 0's
                  return tensor.row->part != 0 || tensor.row->gguf_part != 0;
                });
  for (const PlacedTensor& tensor : tensors) {
    const TensorId id = tensor.row->id;
    const std::string name = tensor_name(config, id, tensor.layer);
    names.insert(name);
    gguf_names.insert(tensor_name(gguf, id, tensor.layer));
    // Labels of profiles are GGUF's usual names.
    const auto own = architecture_of(config).own_tensors;
    const bool is_usual = std::ranges::find(own, id, &TensorRow::id) == own.end();
    if (is_usual) {
      EXPECT_EQ(tensor_name(gguf, id, tensor.layer, ""), tensor_label(id, tensor.layer));
    }
    EXPECT_EQ(is_next_name(name), is_in_layer(id) && is_next_layer(config, tensor.layer));
    if (is_next_name(name)) continue;
    if (is_in_layer(id)) {
      EXPECT_EQ(layer_of_tensor(name), tensor.layer);
    }
    if (is_usual && !tensor.row->is_norm && !tensor.row->is_vector) {
      EXPECT_EQ(gguf_name_of(name), tensor_name(gguf, id, tensor.layer));
    }
  }
  EXPECT_EQ(names.size(), tensors.size());
  EXPECT_EQ(gguf_names.size(), tensors.size());
}

INSTANTIATE_TEST_SUITE_P(Architectures, EveryModelType, testing::ValuesIn(model_types()),
                         [](const auto& type) {
                           std::string name(type.param);
                           std::erase_if(name, [](char c) { return c == ',' || c == ' ' || c == '-'; });
                           return name;
                         });

TEST(Architectures, WhatGgufHasNoPlaceForIsNamed) {
  const auto lost = [](const char* type, const Json& more) {
    Json json = small_config(type);
    for (const auto& [key, value] : more.items()) json[key] = value;
    const ModelConfig config = config_of(json);
    const auto kept = check_config_kept(config, header_of(config));
    return kept ? std::string() : kept.error().sentence();
  };
  EXPECT_EQ(
      lost("gemma3_text", {{"query_pre_attn_scalar", 40}}),
      "A GGUF file of architecture \"gemma3\" has no place for the model's attention scale: 0.158114 would "
      "be read as 0.316228.");
  EXPECT_EQ(
      lost("llama", {{"hidden_act", "gelu"}}),
      "A GGUF file of architecture \"llama\" has no place for the model's activation: 3 would be read as 1.");
  EXPECT_EQ(
      lost("qwen3", {{"use_sliding_window", true}, {"sliding_window", 8}, {"max_window_layers", 3}}),
      "A GGUF file of architecture \"qwen3\" has no place for the model's sliding window: 8 would be read as "
      "0.");
  EXPECT_EQ(
      lost("gemma3_text", {{"attn_logit_softcapping", 50}}),
      "A GGUF file of architecture \"gemma3\" has no place for the model's attention softcap: 50 would be "
      "read as 0.");
  EXPECT_NE(lost("llama", {{"rope_scaling",
                            {{"rope_type", "yarn"},
                             {"factor", 4},
                             {"truncate", false},
                             {"original_max_position_embeddings", 160}}}}),
            "");
  EXPECT_NE(lost("gemma3_text",
                 {{"layer_types", Json::array({"sliding_attention", "full_attention", "sliding_attention",
                                               "sliding_attention", "full_attention", "full_attention",
                                               "sliding_attention"})}}),
            "");
}

}  // namespace
}  // namespace doppler::formats
