// Fields as published config.json files have them, each read as transformers reads it or refused by name.
#include "formats/architectures/test_configs.h"

namespace doppler::formats {
namespace {

Json with(const char* model_type, const Json& more) {
  Json json = small_config(model_type);
  for (const auto& [key, value] : more.items()) json[key] = value;
  return json;
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

}  // namespace
}  // namespace doppler::formats
