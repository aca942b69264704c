// One row a model (shapes.h). "llama-tiny" is no published model: it is for tests.
#include "formats/synth/shapes.h"

#include "base/json.h"
#include "base/text.h"
#include "formats/architectures/config_sources.h"

namespace doppler::formats {
namespace {

struct NamedShape {
  const char* name;
  const char* config;  // config.json, the fields that are not the architecture's defaults
};

constexpr NamedShape kShapes[] = {
    {"llama-tiny",
     R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 768, "vocab_size": 1024,
         "max_position_embeddings": 4096, "rope_theta": 500000, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
         "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                          "original_max_position_embeddings": 8192}})"},
    {"llama-3.2-1b",
     R"({"model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32,
         "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192, "vocab_size": 128256,
         "max_position_embeddings": 131072, "rope_theta": 500000, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
         "rope_scaling": {"rope_type": "llama3", "factor": 32, "low_freq_factor": 1, "high_freq_factor": 4,
                          "original_max_position_embeddings": 8192}})"},
    {"llama-3.2-3b",
     R"({"model_type": "llama", "num_hidden_layers": 28, "hidden_size": 3072, "num_attention_heads": 24,
         "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "vocab_size": 128256,
         "max_position_embeddings": 131072, "rope_theta": 500000, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
         "rope_scaling": {"rope_type": "llama3", "factor": 32, "low_freq_factor": 1, "high_freq_factor": 4,
                          "original_max_position_embeddings": 8192}})"},
    {"llama-3.1-8b",
     R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 14336, "vocab_size": 128256,
         "max_position_embeddings": 131072, "rope_theta": 500000, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
         "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                          "original_max_position_embeddings": 8192}})"},
    {"gemma-3-1b",
     R"({"model_type": "gemma3_text", "num_hidden_layers": 26, "hidden_size": 1152, "num_attention_heads": 4,
         "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144,
         "max_position_embeddings": 32768, "sliding_window": 512})"},
    {"qwen3-30b-a3b",
     R"({"model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32,
         "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
         "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true, "vocab_size": 151936,
         "max_position_embeddings": 40960, "rope_theta": 1000000, "rms_norm_eps": 1e-6, "tie_word_embeddings": false})"},
    {"mixtral-8x7b",
     R"({"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2,
         "vocab_size": 32000, "max_position_embeddings": 32768, "rope_theta": 1000000, "rms_norm_eps": 1e-5,
         "sliding_window": null, "tie_word_embeddings": false})"},
    {"gpt-oss-20b",
     R"({"model_type": "gpt_oss", "num_hidden_layers": 24, "hidden_size": 2880, "num_attention_heads": 64,
         "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "num_local_experts": 32,
         "num_experts_per_tok": 4, "vocab_size": 201088, "max_position_embeddings": 131072, "sliding_window": 128,
         "rope_theta": 150000, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "attention_bias": true,
         "rope_scaling": {"rope_type": "yarn", "factor": 32, "original_max_position_embeddings": 4096,
                          "beta_fast": 32, "beta_slow": 1, "truncate": false}})"},
    {"qwen3.5-0.8b",
     R"({"model_type": "qwen3_5_text", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 8,
         "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 3584, "vocab_size": 248320,
         "max_position_embeddings": 262144, "rope_theta": 10000000, "rms_norm_eps": 1e-6, "tie_word_embeddings": true,
         "linear_num_key_heads": 16, "linear_num_value_heads": 16})"},
    {"lfm2-1.2b",
     R"({"model_type": "lfm2", "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 12288, "vocab_size": 65536, "block_multiple_of": 256,
         "full_attn_idxs": [2, 5, 8, 10, 12, 14]})"},
    {"llama-3.1-70b",
     R"({"model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64,
         "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 28672, "vocab_size": 128256,
         "max_position_embeddings": 131072, "rope_theta": 500000, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
         "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                          "original_max_position_embeddings": 8192}})"},
};

}  // namespace

Result<ModelConfig> config_of_shape(std::string_view name) {
  for (const NamedShape& row : kShapes) {
    if (name != row.name) continue;
    DP_TRY(const Json config, parse_json(row.config, row.name));
    return config_from_huggingface(config);
  }
  const std::vector<std::string> names = shape_name_list();
  std::string known;
  for (const std::string& row : names) known += (known.empty() ? "" : ", ") + row;
  const auto near = nearest(name, names);
  return fail(ErrorKind::kInvalidInput, "There is no shape \"%s\"%s%s%s; there are %s.",
              printable(name).c_str(), near ? " (did you mean " : "", near ? near->c_str() : "",
              near ? "?)" : "", known.c_str());
}

std::vector<std::string> shape_name_list() {
  std::vector<std::string> names;
  for (const NamedShape& row : kShapes) names.emplace_back(row.name);
  return names;
}

}  // namespace doppler::formats
