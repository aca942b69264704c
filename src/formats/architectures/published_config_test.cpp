// Fields as published config.json files have them, each read as transformers reads it or refused by name.
#include <cmath>

#include "formats/architectures/test_configs.h"
#include "formats/safetensors/safetensors_writer.h"

namespace doppler::formats {
namespace {

Json with(const char* model_type, const Json& more) {
  Json json = small_config(model_type);
  for (const auto& [key, value] : more.items()) json[key] = value;
  return json;
}

Json layers_of(const char* type) { return Json(std::vector<std::string>(7, type)); }

std::unique_ptr<Checkpoint> folder(const Json& config, std::vector<std::string> names) {
  const std::vector<uint8_t> data(8);
  std::vector<SafetensorsItem> items;
  for (std::string& name : names) items.push_back({std::move(name), DType::kF16, {2, 2}, data});
  MemorySink sink;
  EXPECT_TRUE(write_safetensors(items, {}, sink));
  uint64_t bytes_read = 0;
  MemoryFileSet::Files files = {{"config.json", bytes_of_text(to_text(config))},
                                {"model.safetensors", sink.bytes()}};
  return must(run_now(open_checkpoint(std::make_unique<MemoryFileSet>(std::move(files), "", &bytes_read))));
}

double attention_factor(const ModelConfig& config) {
  return must(rope_frequencies(config.rope, config.ctx_len, config.ctx_len, {})).attention_factor;
}

// Qwen3-Coder's files say what these models have anyhow.
TEST(PublishedConfigs, QwenNormsOfHeadsMayBeNamed) {
  for (const char* type : {"qwen3", "qwen3_moe"}) {
    EXPECT_EQ(refusal(with(type, {{"use_qk_norm", true}})), "");
    EXPECT_EQ(refusal(with(type, {{"use_qk_norm", false}})),
              "Field \"use_qk_norm\" is false; supported is true.");
  }
}

// transformers' Qwen2MoeConfig and Qwen3MoeConfig have rules of their own for layers that slide.
TEST(PublishedConfigs, QwenWithExpertsDoesNotSlide) {
  for (const char* type : {"qwen2_moe", "qwen3_moe"}) {
    const Json plain = with(type, {{"sliding_window", 8}, {"max_window_layers", 3}});
    EXPECT_EQ(config_of(plain).sliding_window, 0u);
    Json slides = plain;
    slides["use_sliding_window"] = true;
    EXPECT_EQ(refusal(slides), "Field \"use_sliding_window\" is not supported in models of type \"" +
                                   std::string(type) + "\".");
  }
}

TEST(PublishedConfigs, QwenHybridsFollowTheIntervalOrTheList) {
  for (const char* type : {"qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"}) {
    const ModelConfig third = config_of(with(type, {{"full_attention_interval", 3}}));
    EXPECT_EQ(third.recurrent.is_recurrent, (std::vector<uint8_t>{1, 1, 0, 1, 1, 0, 1}));
    EXPECT_TRUE(check_config_kept(third, header_of(third)));
    const Json attention =
        with(type, {{"layer_types", layers_of("full_attention")}, {"full_attention_interval", 3}});
    EXPECT_FALSE(is_recurrent_layer(config_of(attention), 0));
    EXPECT_TRUE(check_config_kept(config_of(attention), header_of(config_of(attention))));
    EXPECT_EQ(refusal(with(type, {{"full_attention_interval", 0}})),
              "Field \"full_attention_interval\" is 0; allowed is 1 or more.");
  }
  const ModelConfig lfm2 = config_of(with("lfm2", {{"layer_types", layers_of("full_attention")}}));
  EXPECT_FALSE(is_recurrent_layer(lfm2, 0));
}

TEST(PublishedConfigs, Lfm2MayNameItsWidthByTheOldNameAlone) {
  Json json = with("lfm2", {{"block_ff_dim", 96}, {"block_multiple_of", 32}});
  json.erase("intermediate_size");
  EXPECT_EQ(config_of(json).ffn_dim, 64u);
}

TEST(PublishedConfigs, DenseHunyuanMayHaveOneExpert) {
  EXPECT_EQ(config_of(with("hunyuan_v1_dense", {{"num_experts", 1}})).moe.n_experts, 0u);
  EXPECT_EQ(refusal(with("hunyuan_v1_dense", {{"num_experts", 8}})),
            "Field \"num_experts\" is 8; models of type \"hunyuan_v1_dense\" have 0 or 1.");
}

// With a window, layers without it do not rotate, even if no layer slides.
TEST(PublishedConfigs, ExaoneOfAWindowThatNoLayerHasDoesNotRotate) {
  const Json types = {{"layer_types", layers_of("full_attention")}, {"sliding_window", 9}};
  const ModelConfig config = config_of(with("exaone4", types));
  EXPECT_FALSE(is_rotated_layer(config, 0) || is_rotated_layer(config, 6));
  EXPECT_FALSE(check_config_kept(config, header_of(config)));
  Json none = with("exaone4", types);
  none["sliding_window"] = nullptr;
  EXPECT_TRUE(is_rotated_layer(config_of(none), 0));
}

TEST(PublishedConfigs, GatesOfGemmaAreNamedByOneField) {
  const Json both = {{"hidden_act", "silu"}, {"hidden_activation", "gelu_pytorch_tanh"}};
  for (const char* type : {"gemma2", "gemma3_text", "gemma3n_text", "gemma4_text"}) {
    EXPECT_EQ(config_of(with(type, both)).activation, ActivationFn::kGeluTanh) << type;
  }
  EXPECT_EQ(config_of(with("llama", both)).activation, ActivationFn::kSilu);
}

TEST(PublishedConfigs, WeightsStoredInWaysThatNobodyReadsAreRefused) {
  const auto quantised = [](const Json& json) {
    const Json fields = {{"quantization_config", json}};
    const auto model = folder(with("llama", fields), {"model.embed_tokens.weight"});
    const auto config = read_config(*model);
    return config ? std::string() : config.error().sentence();
  };
  EXPECT_EQ(quantised({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}), "");
  EXPECT_EQ(quantised({{"quant_method", "compressed-tensors"}, {"transform_config", Json::object()}}), "");
  EXPECT_EQ(quantised({{"quant_method", "bitnet"}}),
            "Weights of quant_method \"bitnet\" are not supported; supported are fp8, fbgemm_fp8, "
            "compressed-tensors, modelopt and mxfp4.");
  EXPECT_EQ(quantised({{"quant_method", "compressed-tensors"}, {"transform_config", {{"config_groups", 1}}}}),
            "Field \"transform_config\" of \"quantization_config\" is not supported; allowed is none.");
}

TEST(PublishedConfigs, BertThatDecodesIsRefused) {
  EXPECT_EQ(refusal(with("bert", {{"is_decoder", false}})), "");
  EXPECT_EQ(refusal(with("roberta", {{"is_decoder", true}})),
            "Field \"is_decoder\" is true; supported is false.");
}

// transformers ties two matrices of a file only if they are equal.
TEST(PublishedConfigs, AnOutputMatrixInTheFileIsUsed) {
  for (const bool tied : {true, false}) {
    const Json json = with("qwen3", {{"tie_word_embeddings", tied}});
    const auto apart = folder(json, {"model.embed_tokens.weight", "lm_head.weight"});
    EXPECT_FALSE(must(read_config(*apart)).tied_embeddings);
    const auto one = folder(json, {"model.embed_tokens.weight"});
    EXPECT_TRUE(must(read_config(*one)).tied_embeddings);
  }
}

TEST(PublishedConfigs, LayersBehindTheLastAreCounted) {
  const auto left_out = [](const Json& json) {
    const auto model = folder(json, {"model.embed_tokens.weight", "model.layers.6.input_layernorm.weight",
                                     "model.layers.8.input_layernorm.weight", "vision.layers.30.weight"});
    return layers_left_out(*model, must(read_config(*model)));
  };
  EXPECT_EQ(left_out(with("llama", {})), 2u);
  EXPECT_EQ(left_out(with("llama", {{"num_hidden_layers", 9}})), 0u);
  EXPECT_EQ(left_out(with("glm4_moe", {{"num_hidden_layers", 8}, {"num_nextn_predict_layers", 1}})), 0u);
}

Json longrope(const Json& more) {
  Json scaling = {{"type", "longrope"}, {"short_factor", {1, 1, 1, 1, 1}}, {"long_factor", {2, 2, 2, 2, 2}}};
  for (const auto& [key, value] : more.items()) scaling[key] = value;
  return with("phi3", {{"original_max_position_embeddings", 160}, {"rope_scaling", scaling}});
}

TEST(PublishedConfigs, FactorsOfLongRope) {
  const auto by = [](double factor) { return std::sqrt(1 + std::log(factor) / std::log(160.0)); };
  EXPECT_NEAR(attention_factor(config_of(longrope(Json::object()))), by(4), 1e-6);
  EXPECT_NEAR(attention_factor(config_of(longrope({{"factor", 32}}))), by(32), 1e-6);
  EXPECT_NEAR(attention_factor(config_of(longrope({{"factor", 0.5}}))), 1, 1e-6);
  EXPECT_NEAR(attention_factor(config_of(longrope({{"factor", 32}, {"attention_factor", 1.25}}))), 1.25,
              1e-6);
  // The model's own number goes before that of the scaling.
  EXPECT_NEAR(attention_factor(config_of(longrope({{"original_max_position_embeddings", 320}}))), by(4),
              1e-6);
}

// Up to what the model was trained for it is no scaling; further positions are refused where a model is loaded.
TEST(PublishedConfigs, DynamicRopeEndsWhereTheModelWasTrainedFor) {
  const ModelConfig config =
      config_of(with("llama", {{"rope_scaling", {{"type", "dynamic"}, {"factor", 2}}}}));
  const ModelConfig plain = config_of(with("llama", {}));
  EXPECT_TRUE(ends_at_ctx_len(config));
  EXPECT_FALSE(ends_at_ctx_len(plain));
  EXPECT_EQ(must(rope_frequencies(config.rope, 64, config.ctx_len, {})).inv_freq,
            must(rope_frequencies(plain.rope, 64, config.ctx_len, {})).inv_freq);
  EXPECT_TRUE(ends_at_ctx_len(config_of(with("bert", {}))));
}

}  // namespace
}  // namespace doppler::formats
