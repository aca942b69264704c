// Rows against each other and against the readers: what the converter writes by a row is what the engine reads by it.
#include <gtest/gtest.h>

#include <set>

#include "base/json.h"
#include "formats/architectures/architecture.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/gguf_metadata.h"
#include "formats/architectures/rope_frequencies.h"
#include "formats/architectures/tensor_names.h"
#include "formats/test_helpers.h"

namespace doppler::formats {
namespace {

// A row that does not say how its files pair the numbers of a head does not compile.
static_assert(!std::is_default_constructible_v<Required<RopePairing>>);
static_assert(!std::is_default_constructible_v<GgufRow> && !std::is_default_constructible_v<HuggingFaceRow>);
static_assert(!std::is_default_constructible_v<Architecture>);

// Odd sizes, so that no two dimensions are the same number; what is not here has the family's default.
Json small_config(std::string_view model_type) {
  Json json = {{"model_type", std::string(model_type)},
               {"num_hidden_layers", 7},
               {"hidden_size", 48},
               {"num_attention_heads", 6},
               {"num_key_value_heads", 2},
               {"head_dim", 10},
               {"intermediate_size", 84},
               {"moe_intermediate_size", 14},  // default numbers of experts are in the hundreds
               {"vocab_size", 33},
               {"max_position_embeddings", 640},
               {"rms_norm_eps", 3e-6},
               {"query_pre_attn_scalar", 10},
               {"partial_rotary_factor", 1.0}};
  if (model_type.starts_with("gemma3n") || model_type.starts_with("gemma4")) {
    json["hidden_size_per_layer_input"] = 6;
    json["vocab_size_per_layer_input"] = 31;
  }
  if (model_type.starts_with("gemma4")) json["global_head_dim"] = 10;
  if (model_type.starts_with("gemma3n")) json["num_kv_shared_layers"] = 2;
  if (model_type.starts_with("lfm2")) json["full_attn_idxs"] = {1, 4};
  if (model_type.starts_with("deepseek") || model_type == "mistral4" || model_type == "kimi_k2" ||
      model_type == "glm4_moe_lite") {
    for (const auto& [key, count] :
         {std::pair("kv_lora_rank", 17), std::pair("qk_nope_head_dim", 9), std::pair("qk_rope_head_dim", 4),
          std::pair("v_head_dim", 11), std::pair("n_routed_experts", 12), std::pair("num_experts_per_tok", 3),
          std::pair("n_shared_experts", 2), std::pair("first_k_dense_replace", 1), std::pair("n_group", 3),
          std::pair("topk_group", 2)}) {
      json[key] = count;
    }
    json.erase("query_pre_attn_scalar");
    if (model_type != "deepseek_v2") json["q_lora_rank"] = 13;
    if (model_type == "deepseek_v2") json["topk_method"] = "group_limited_greedy";
  }
  if (model_type.starts_with("qwen3_5")) json["mtp_num_hidden_layers"] = 1;
  if (model_type == "nemotron_h") {
    json["hybrid_override_pattern"] = "ME*EM*E";
    for (const auto& [key, count] :
         {std::pair("n_routed_experts", 12), std::pair("num_experts_per_tok", 3), std::pair("n_groups", 2),
          std::pair("moe_shared_expert_intermediate_size", 15), std::pair("moe_latent_size", 22),
          std::pair("mamba_num_heads", 12)}) {
      json[key] = count;
    }
  }
  if (model_type == "granitemoehybrid") {
    json["layer_types"] = {"mamba", "mamba", "attention", "mamba", "mamba", "attention", "mamba"};
    json["mamba_n_heads"] = 12;
    json["attention_multiplier"] = 0.5;
  }
  return json;
}

ModelConfig config_of(const Json& json) {
  auto config = config_from_huggingface(json);
  EXPECT_TRUE(config) << config.error().message();
  return std::move(config).value_or(ModelConfig());
}

std::string refusal(const Json& json) {
  const auto config = config_from_huggingface(json);
  return config ? "" : config.error().sentence();
}

// The header that the converter would write, with all tensors.
GgufHeader header_of(ModelConfig config) {
  GgufHeader header;
  const auto added = add_config_metadata(header, config, 0);
  EXPECT_TRUE(added) << added.error().message();
  config.gguf_names = true;
  for (const PlacedTensor& tensor : tensors_of(config)) {
    if (tensor.row->part != 0 || tensor.row->gguf_part != 0) continue;  // within the tensor of part 0
    header.add_tensor(tensor_name(config, tensor.row->id, tensor.layer), DType::kF32,
                      tensor.row->shape.extents(config, tensor.layer));
  }
  const std::vector<float> divisors = rope_divisors(config);
  if (!divisors.empty()) header.add_tensor("rope_freqs.weight", DType::kF32, {divisors.size()});
  return header;
}

ModelConfig read_back(GgufHeader header) {
  std::vector<uint8_t> bytes = header.build();
  bytes.resize(header.file_bytes());
  uint64_t bytes_read = 0;
  auto files =
      std::make_unique<MemoryFileSet>(MemoryFileSet::Files{{"m.gguf", bytes}}, "m.gguf", &bytes_read);
  const auto checkpoint = must(run_now(open_checkpoint(std::move(files))));
  return must(read_config(*checkpoint));
}

class EveryModelType : public testing::TestWithParam<std::string_view> {};

std::vector<std::string_view> model_types() {
  std::vector<std::string_view> out;
  for (const Architecture* row : all_architectures()) {
    for (const HuggingFaceType& type : row->huggingface.model_types) out.push_back(type.model_type);
  }
  return out;
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

TEST(Architectures, Gemma3HasTheNormsOfItsOwnNames) {
  ModelConfig config = config_of(small_config("gemma3_text"));
  const StoredTensor ffn = stored_tensor(config, TensorId::kFfnNorm, 3);
  EXPECT_EQ(ffn.name, "model.layers.3.pre_feedforward_layernorm");
  EXPECT_EQ(ffn.offset, 1.0f);
  EXPECT_EQ(tensor_name(config, TensorId::kPostAttentionNorm, 3, ""),
            "model.layers.3.post_attention_layernorm");
  EXPECT_EQ(stored_tensor(config, TensorId::kQ, 3).offset, 0.0f);
  config.gguf_names = true;
  EXPECT_EQ(tensor_name(config, TensorId::kFfnNorm, 3), "blk.3.ffn_norm.weight");
  EXPECT_EQ(stored_tensor(config, TensorId::kFfnNorm, 3).offset, 0.0f);
}

TEST(Architectures, ShapesHaveAnyNumberOfDimensions) {
  const ModelConfig config = config_of(small_config("qwen3"));
  const Shape experts = {Dim::kVocab, Dim::kFfn, Dim::kHidden};
  EXPECT_EQ(experts.extents(config, 0), (std::vector<uint64_t>{33, 84, 48}));
  EXPECT_EQ(stored_tensor(config, TensorId::kAttentionOut, 0).shape, (std::vector<uint64_t>{48, 60}));
  EXPECT_EQ(stored_tensor(config, TensorId::kKNorm, 0).shape, (std::vector<uint64_t>{10}));
}

// Layer 5 of seven sees everything; newer files say by its number what it has.
TEST(Gemma4, LayersHaveHeadsCachesAndWidthsOfTheirOwn) {
  Json old_style = small_config("gemma4_text");
  old_style["attention_k_eq_v"] = true;
  old_style["num_kv_shared_layers"] = 1;
  old_style["use_double_wide_mlp"] = true;
  Json new_style = old_style;
  old_style["global_head_dim"] = 20;
  old_style["num_global_key_value_heads"] = 3;
  new_style["per_layer_config"] = {{"5", {{"head_dim", 20}, {"num_key_value_heads", 3}}}};
  for (const Json& json : {old_style, new_style}) {
    const ModelConfig config = config_of(json);
    EXPECT_EQ(stored_tensor(config, TensorId::kQ, 4).shape, (std::vector<uint64_t>{60, 48}));
    EXPECT_EQ(stored_tensor(config, TensorId::kQ, 5).shape, (std::vector<uint64_t>{120, 48}));
    EXPECT_EQ(stored_tensor(config, TensorId::kK, 5).shape, (std::vector<uint64_t>{60, 48}));
    EXPECT_EQ(stored_tensor(config, TensorId::kUp, 6).shape, (std::vector<uint64_t>{168, 48}));
    EXPECT_TRUE(has_tensor(config, TensorId::kV, 4) && !has_tensor(config, TensorId::kV, 5));
    EXPECT_FALSE(has_tensor(config, TensorId::kK, 6) || has_cache(config, 6));
    EXPECT_EQ(cache_layer(config, 6), 4u);
    const auto kept = check_config_kept(config, header_of(config));
    EXPECT_TRUE(kept) << kept.error().message();
  }
  old_style["num_kv_shared_layers"] = 7;
  EXPECT_EQ(refusal(old_style),
            "The last 7 of 7 layers share keys and values, but none before them is of the kind of layer 0.");
}

// What transformers 5 writes has a list for the pattern, and infinity as an object.
TEST(NemotronH, LayersAreWhatThePatternSays) {
  Json old_style = small_config("nemotron_h");
  Json new_style = old_style;
  new_style.erase("hybrid_override_pattern");
  new_style.erase("num_hidden_layers");
  new_style["layers_block_type"] = {"linear_attention", "moe", "full_attention", "moe", "mamba",
                                    "attention",        "moe"};
  new_style["time_step_limit"] = {0.0, {{"__float__", "Infinity"}}};
  for (const Json& json : {old_style, new_style}) {
    const ModelConfig config = config_of(json);
    EXPECT_EQ(config.recurrent.is_recurrent, (std::vector<uint8_t>{1, 0, 0, 0, 1, 0, 0}));
    EXPECT_EQ(config.is_feed_forward, (std::vector<uint8_t>{0, 1, 0, 1, 0, 0, 1}));
    EXPECT_TRUE(has_cache(config, 2) && !has_cache(config, 1) && !has_cache(config, 0));
    EXPECT_TRUE(has_tensor(config, TensorId::kQ, 2) && !has_tensor(config, TensorId::kExpertUp, 2));
    EXPECT_TRUE(has_tensor(config, TensorId::kExpertUp, 1) && !has_tensor(config, TensorId::kQ, 1));
    EXPECT_EQ(stored_tensor(config, TensorId::kExpertDown, 1).shape, (std::vector<uint64_t>{12, 22, 14}));
    EXPECT_EQ(gguf_architecture(config), "nemotron_h_moe");
  }
  Json dense = old_style;
  dense["hybrid_override_pattern"] = "M-*-M*-";
  const ModelConfig config = config_of(dense);
  EXPECT_EQ(gguf_architecture(config), "nemotron_h");
  EXPECT_EQ(stored_tensor(config, TensorId::kUp, 1).shape, (std::vector<uint64_t>{84, 48}));
  const auto kept = check_config_kept(config, header_of(config));
  EXPECT_TRUE(kept) << kept.error().message();
  const struct {
    const char* key;
    Json value;
    const char* sentence;
  } kRows[] = {
      {"hybrid_override_pattern", "M-X",
       "say the layers \"M-X\"; known are mamba (M), attention (*), mlp (-)"},
      {"hybrid_override_pattern", "M-*", "The pattern of layers has 3; field \"num_hidden_layers\" is 7."},
      {"time_step_limit", Json::array({0.001, 1e30}),
       "Field \"time_step_limit\" is [0.001,1e+30]; supported"},
      {"mlp_hidden_act", "silu", "Field \"mlp_hidden_act\" is \"silu\"; supported is \"relu2\"."},
      {"n_shared_experts", 2, "Field \"n_shared_experts\" is 2; supported is 1."},
  };
  for (const auto& row : kRows) {
    Json json = old_style;
    json[row.key] = row.value;
    EXPECT_NE(refusal(json).find(row.sentence), std::string::npos) << row.key << ": " << refusal(json);
  }
}

// Kimi K2 and GLM 4.7 Flash have V3's mathematics under other names.
TEST(DeepSeek, OthersOfItsKindHaveItsNumbers) {
  const Json v3 = small_config("deepseek_v3");
  ModelConfig wanted = config_of(v3);
  Json kimi = v3, glm = v3;
  kimi["model_type"] = "kimi_k2";
  glm["model_type"] = "glm4_moe_lite";
  glm.erase("first_k_dense_replace");  // transformers has the kinds of layers, or the first alone dense
  Json listed = glm;
  listed["mlp_layer_types"] = {"dense", "sparse", "sparse", "sparse", "sparse", "sparse", "sparse"};
  for (const Json& json : {kimi, glm, listed, Json{{"model_type", "kimi_k25"}, {"text_config", kimi}}}) {
    const ModelConfig config = config_of(json);
    EXPECT_EQ(config.family, "deepseek");
    EXPECT_EQ(gguf_architecture(config), "deepseek2");
    const auto kept = check_config_kept(config, header_of(wanted));
    EXPECT_TRUE(kept) << kept.error().message();
  }
  listed["mlp_layer_types"][4] = "dense";
  EXPECT_EQ(config_of(listed).moe.is_moe, (std::vector<uint8_t>{0, 1, 1, 1, 0, 1, 1}));
  listed["mlp_layer_types"][4] = "other";
  EXPECT_EQ(refusal(listed), "Field \"mlp_layer_types\" has \"other\"; known are \"dense\" and \"sparse\".");
}

// As the published files spell it: Qwen3-0.6B has neither head_dim's nor layer_types' default.
TEST(Qwen3, FieldsOfBothSpellings) {
  Json old_style = small_config("qwen3");
  old_style.erase("query_pre_attn_scalar");
  old_style["max_window_layers"] = 7;
  old_style["use_sliding_window"] = false;
  old_style["sliding_window"] = nullptr;
  old_style["rope_theta"] = 1000000.0;
  old_style["rope_scaling"] = nullptr;
  Json new_style = old_style;
  new_style.erase("rope_theta");
  new_style.erase("rope_scaling");
  new_style["rope_parameters"] = {{"rope_theta", 1000000.0}, {"rope_type", "default"}};
  new_style["layer_types"] = Json::array();
  for (int i = 0; i < 7; ++i) new_style["layer_types"].push_back("full_attention");
  for (const Json& json : {old_style, new_style}) {
    const ModelConfig config = config_of(json);
    EXPECT_EQ(config.rope.theta, 1e6);
    EXPECT_EQ(config.rope.pairing, RopePairing::kNeox);
    EXPECT_EQ(config.sliding_window, 0u);
    EXPECT_TRUE(config.is_sliding.empty());
    EXPECT_FALSE(config.tied_embeddings);
  }
  Json without = old_style;
  without.erase("head_dim");
  EXPECT_EQ(config_of(without).head_dim, 128u);
}

TEST(Qwen3, LayersThatSlideAreUnderstoodOrRefused) {
  Json json = small_config("qwen3");
  json["use_sliding_window"] = true;
  json["sliding_window"] = 8;
  json["max_window_layers"] = 5;
  const ModelConfig config = config_of(json);
  EXPECT_EQ(config.sliding_window, 8u);
  EXPECT_EQ(config.is_sliding, (std::vector<uint8_t>{0, 0, 0, 0, 0, 1, 1}));
  EXPECT_FALSE(is_sliding_layer(config, 4));
  EXPECT_TRUE(is_sliding_layer(config, 5));
  json["max_window_layers"] = 7;
  EXPECT_EQ(config_of(json).sliding_window, 0u);
  json["layer_types"] = Json::array({"full_attention"});
  EXPECT_EQ(refusal(json), "Field \"layer_types\" must be a list of one name a layer (7).");
  json["layer_types"] = Json::array();
  for (int i = 0; i < 7; ++i) json["layer_types"].push_back(i == 2 ? "sliding_attention" : "full_attention");
  EXPECT_EQ(config_of(json).is_sliding, (std::vector<uint8_t>{0, 0, 1, 0, 0, 0, 0}));
  json["use_sliding_window"] = false;
  EXPECT_EQ(refusal(json),
            "Field \"layer_types\" has layers that slide, but the model has no sliding window.");
  json["layer_types"][2] = "linear_attention";
  EXPECT_EQ(refusal(json),
            "Layer type \"linear_attention\" is not known; known are \"sliding_attention\" and "
            "\"full_attention\".");
}

// Published wrappers have the text model's type inside, and transformers ties by the outer field.
TEST(HuggingFaceConfig, WrappersAreNamedAfterTheirTextModel) {
  Json text = small_config("ministral3");
  text["tie_word_embeddings"] = false;
  text["rope_parameters"] = {{"rope_type", "yarn"},
                             {"factor", 4},
                             {"mscale", 1},
                             {"mscale_all_dim", 1},
                             {"llama_4_scaling_beta", 0.1},
                             {"original_max_position_embeddings", 16}};
  const ModelConfig config =
      config_of({{"model_type", "mistral3"}, {"text_config", text}, {"tie_word_embeddings", true}});
  EXPECT_EQ(config.family, "ministral3");
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_EQ(config.query_scaling.beta, 0.1);
  EXPECT_EQ(config.query_scaling.ctx_len, 16);
  const auto kept = check_config_kept(config, header_of(config));
  EXPECT_TRUE(kept) << kept.error().message();
}

TEST(HuggingFaceConfig, LayersThatSlideOrDoNotRotate) {
  Json exaone = small_config("exaone4");
  exaone["sliding_window"] = 9;
  exaone["sliding_window_pattern"] = "LLG";
  EXPECT_EQ(config_of(exaone).is_sliding, (std::vector<uint8_t>{1, 1, 0, 1, 1, 0, 1}));
  EXPECT_EQ(config_of(exaone).is_unrotated, (std::vector<uint8_t>{0, 0, 1, 0, 0, 1, 0}));
  exaone["sliding_window"] = nullptr;
  EXPECT_TRUE(config_of(exaone).is_unrotated.empty());
  Json smol = small_config("smollm3");
  EXPECT_EQ(config_of(smol).is_unrotated, (std::vector<uint8_t>{0, 0, 0, 1, 0, 0, 0}));
  smol["no_rope_layers"] = Json::array({1, 0, 1, 1, 1, 1, 1});
  EXPECT_EQ(config_of(smol).is_unrotated, (std::vector<uint8_t>{0, 1, 0, 0, 0, 0, 0}));
  smol["no_rope_layers"] = Json::array({1});
  EXPECT_EQ(refusal(smol), "Field \"no_rope_layers\" must be a list of one number a layer (7).");
}

TEST(Architectures, UnknownOnesAreRefusedWithTheNearest) {
  const struct {
    const char* name;
    const char* nearest;
  } kRows[] = {{"qwen4", "qwen3"},
               {"qwen3_moee", "qwen3_moe"},
               {"llama4", "llama"},
               {"deepseek_v32", "deepseek_v3"},
               {"gemma5_text", "gemma4_text"},
               {"ernie4_5_vl_moe", "ernie4_5_moe"},
               {"granitemoeshared", "granitemoehybrid"},
               {"nemotron", "nemotron_h"}};
  for (const auto& row : kRows) {
    const auto found = find_architecture_huggingface(row.name);
    ASSERT_FALSE(found);
    const std::string wanted = "Model type \"" + std::string(row.name) +
                               "\" is not supported (the nearest is " + row.nearest +
                               "); supported in Hugging Face folders: llama, ";
    EXPECT_TRUE(found.error().sentence().starts_with(wanted)) << found.error().sentence();
  }
  EXPECT_TRUE(find_architecture_gguf("qwen3vlmoe")
                  .error()
                  .sentence()
                  .starts_with("Architecture \"qwen3vlmoe\" is not supported (the nearest is qwen3moe); "
                               "supported in GGUF files: llama, "));
}

TEST(HuggingFaceConfig, FieldsThatWouldChangeTheMathsAreRefused) {
  const struct {
    const char* type;
    const char* key;
    Json value;
    const char* sentence;
  } kRows[] = {
      {"llama", "use_sliding_window", true,
       "\"use_sliding_window\" is not supported in models of type \"llama\"."},
      {"llama", "attn_logit_softcapping", 50,
       "\"attn_logit_softcapping\" is not supported in models of type"},
      {"llama", "query_pre_attn_scalar", 64, "\"query_pre_attn_scalar\" is not supported in models of type"},
      {"gemma3", "final_logit_softcapping", 30,
       "\"final_logit_softcapping\" (30) is not supported in models"},
      {"qwen3", "attention_bias", true, "\"attention_bias\" is not supported in models of type \"qwen3\"."},
      {"qwen3", "num_experts", 8, "\"num_experts\" (8) is not supported in models of type \"qwen3\"."},
      {"llama", "no_rope_layers", Json::array({1, 0}),
       "\"no_rope_layers\" ([1,0]) is not supported in models of type \"llama\"."},
      {"qwen2", "use_mrope", true, "\"use_mrope\" (true) is not supported in models of type \"qwen2\"."},
      {"gpt_oss", "swiglu_alpha", 1.5, "\"swiglu_alpha\" (1.5) is not supported in models of type"},
      {"llama", "is_causal", false, "\"is_causal\" (false) is not supported in models of type \"llama\"."},
      {"mixtral", "n_shared_experts", 1, "\"n_shared_experts\" (1) is not supported in models of type"},
      {"deepseek_v3", "index_topk", 2048, "\"index_topk\" (2048) is not supported in models of type"},
      {"granitemoehybrid", "time_step_limit", Json::array({0.001, 0.1}),
       "Field \"time_step_limit\" is [0.001,0.1]; supported is none: [0, Infinity]."},
      {"llama", "residual_multiplier", 0.5, "\"residual_multiplier\" (0.5) is not supported"},
      {"mistral", "hidden_act", "relu", "Activation \"relu\" is not known"},
      {"hunyuan_v1_moe", "moe_topk", Json::array({1, 1, 2}),
       "Field \"moe_topk\" has 2 beside 1; allowed is one count for all layers."},
      {"minimax_m2", "qk_norm_type", "per_head",
       "Field \"qk_norm_type\" is \"per_head\"; supported is \"per_layer\"."},
      {"xlm-roberta", "position_embedding_type", "rotary",
       "Positions of type \"rotary\" are not supported; supported are absolute ones."},
      {"roberta", "pad_token_id", 639,
       "\"max_position_embeddings\" is 640; with \"pad_token_id\" 639 it must be above 640."},
      {"t5", "x", 0,
       "Model type \"t5\" is not supported; supported in Hugging Face folders: llama, mistral, "
       "ministral3, "},
  };
  for (const auto& row : kRows) {
    Json json = small_config(row.type);
    json[row.key] = row.value;
    EXPECT_NE(refusal(json).find(row.sentence), std::string::npos) << row.key << ": " << refusal(json);
  }
  Json neutral = small_config("llama");
  neutral["residual_multiplier"] = 1;
  neutral["use_qk_norm"] = false;
  neutral["num_experts"] = nullptr;
  EXPECT_EQ(refusal(neutral), "");
}

}  // namespace
}  // namespace doppler::formats
