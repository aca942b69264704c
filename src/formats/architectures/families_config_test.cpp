// Tests what the rows of single families read, and how they refuse configurations.
#include "formats/architectures/test_configs.h"

namespace doppler::formats {
namespace {

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

// transformers 5 writes a list for the pattern, and infinity as an object.
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
  // transformers has the kinds of layers, or a default by which only the first is dense
  glm.erase("first_k_dense_replace");
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
