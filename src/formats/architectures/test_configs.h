// Configurations for tests of the architectures' rows: a small config.json of each type, and a converter's metadata for
// it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "formats/architectures/architecture.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/gguf_metadata.h"
#include "formats/architectures/rope_frequencies.h"
#include "formats/architectures/tensor_names.h"
#include "formats/test_helpers.h"

namespace doppler::formats {

// Odd sizes, so that no two dimensions are the same number; what is not here has the family's default.
inline Json small_config(std::string_view model_type) {
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

inline ModelConfig config_of(const Json& json) {
  auto config = config_from_huggingface(json);
  EXPECT_TRUE(config) << config.error().message();
  return std::move(config).value_or(ModelConfig());
}

inline std::string refusal(const Json& json) {
  const auto config = config_from_huggingface(json);
  return config ? "" : config.error().sentence();
}

// The header that the converter would write, with all tensors.
inline GgufHeader header_of(ModelConfig config) {
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

inline ModelConfig read_back(GgufHeader header) {
  std::vector<uint8_t> bytes = header.build();
  bytes.resize(header.file_bytes());
  uint64_t bytes_read = 0;
  auto files =
      std::make_unique<MemoryFileSet>(MemoryFileSet::Files{{"m.gguf", bytes}}, "m.gguf", &bytes_read);
  const auto checkpoint = must(run_now(open_checkpoint(std::move(files))));
  return must(read_config(*checkpoint));
}

class EveryModelType : public testing::TestWithParam<std::string_view> {};

}  // namespace doppler::formats
