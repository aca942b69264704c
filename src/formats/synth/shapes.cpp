// One row a model (shapes.h). "llama-tiny" is no published model: it is for tests.
#include "formats/synth/shapes.h"

#include <filesystem>

#include "base/json.h"
#include "base/mapped_file.h"
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
    {"gemma-3-4b",
     R"({"model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560, "num_attention_heads": 8,
         "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 10240, "vocab_size": 262208,
         "max_position_embeddings": 131072, "sliding_window": 1024,
         "rope_scaling": {"rope_type": "linear", "factor": 8}})"},
    {"gemma-3-12b",
     R"({"model_type": "gemma3_text", "num_hidden_layers": 48, "hidden_size": 3840, "num_attention_heads": 16,
         "num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 15360, "vocab_size": 262208,
         "max_position_embeddings": 131072, "sliding_window": 1024,
         "rope_scaling": {"rope_type": "linear", "factor": 8}})"},
    {"gemma-4-e2b",
     R"({"model_type": "gemma4_text", "num_hidden_layers": 35, "hidden_size": 1536, "num_attention_heads": 8,
         "num_key_value_heads": 1, "head_dim": 256, "global_head_dim": 512, "intermediate_size": 6144,
         "vocab_size": 262144, "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256,
         "num_kv_shared_layers": 20, "use_double_wide_mlp": true, "enable_moe_block": false,
         "final_logit_softcapping": 30.0, "max_position_embeddings": 131072, "sliding_window": 512,
         "tie_word_embeddings": true,
         "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
                         "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
                         "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
                         "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
                         "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
                         "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
                         "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
         "rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
                                                "rope_type": "proportional"},
                             "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}})"},
    {"glm-4-9b",
     R"({"model_type": "glm4", "num_hidden_layers": 40, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 13696, "vocab_size": 151552,
         "max_position_embeddings": 32768, "rope_theta": 10000, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-5,
         "attention_bias": true, "tie_word_embeddings": false})"},
    {"granite-3.3-8b",
     R"({"model_type": "granite", "num_hidden_layers": 40, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 12800, "vocab_size": 49159, "max_position_embeddings": 131072,
         "rope_theta": 10000000, "rms_norm_eps": 1e-5, "attention_multiplier": 0.0078125, "embedding_multiplier": 12,
         "logits_scaling": 16, "residual_multiplier": 0.22, "tie_word_embeddings": true})"},
    {"mistral-7b",
     R"({"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32768, "max_position_embeddings": 32768,
         "rope_theta": 1000000, "rms_norm_eps": 1e-5, "sliding_window": null, "tie_word_embeddings": false})"},
    {"olmo-2-7b",
     R"({"model_type": "olmo2", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 100352, "max_position_embeddings": 4096,
         "rope_theta": 500000, "rms_norm_eps": 1e-6, "tie_word_embeddings": false})"},
    {"phi-4",
     R"({"model_type": "phi3", "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40,
         "num_key_value_heads": 10, "intermediate_size": 17920, "vocab_size": 100352, "max_position_embeddings": 16384,
         "original_max_position_embeddings": 16384, "rope_theta": 250000, "rms_norm_eps": 1e-5,
         "sliding_window": null, "tie_word_embeddings": false})"},
    {"qwen3-4b",
     R"({"model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 2560, "num_attention_heads": 32,
         "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 9728, "vocab_size": 151936,
         "max_position_embeddings": 40960, "rope_theta": 1000000, "rms_norm_eps": 1e-6, "tie_word_embeddings": true})"},
    {"qwen3-8b",
     R"({"model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936,
         "max_position_embeddings": 40960, "rope_theta": 1000000, "rms_norm_eps": 1e-6, "tie_word_embeddings": false})"},
    {"qwen3-14b",
     R"({"model_type": "qwen3", "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40,
         "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 17408, "vocab_size": 151936,
         "max_position_embeddings": 40960, "rope_theta": 1000000, "rms_norm_eps": 1e-6, "tie_word_embeddings": false})"},
    {"llama-3.1-70b",
     R"({"model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64,
         "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 28672, "vocab_size": 128256,
         "max_position_embeddings": 131072, "rope_theta": 500000, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
         "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                          "original_max_position_embeddings": 8192}})"},
};

constexpr size_t kMostBytes = 1 << 20;  // real ones have a few kB

Result<NamedConfig> shape_of_file(const std::string& path) {
  DP_TRY(const MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > kMostBytes) {
    return fail(ErrorKind::kInvalidInput, "%s has %zu bytes; a config.json has at most %zu.", path.c_str(),
                file.bytes().size(), kMostBytes);
  }
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  DP_TRY(const Json json, parse_json(text, path));
  DP_TRY(ModelConfig config, config_from_huggingface(json));
  return NamedConfig{std::filesystem::absolute(path).parent_path().filename().string(), std::move(config)};
}

}  // namespace

Result<NamedConfig> shape_of(const std::string& name_or_path) {
  for (const NamedShape& row : kShapes) {
    if (name_or_path != row.name) continue;
    DP_TRY(const Json config, parse_json(row.config, row.name));
    DP_TRY(ModelConfig read, config_from_huggingface(config));
    return NamedConfig{row.name, std::move(read)};
  }
  if (name_or_path.ends_with(".json")) return shape_of_file(name_or_path);
  const std::vector<std::string> names = shape_name_list();
  std::string known;
  for (const std::string& row : names) known += (known.empty() ? "" : ", ") + row;
  const auto near = nearest(name_or_path, names);
  return fail(ErrorKind::kInvalidInput,
              "There is no shape \"%s\"%s%s%s; there are %s, and any config.json by its path.",
              printable(name_or_path).c_str(), near ? " (did you mean " : "", near ? near->c_str() : "",
              near ? "?)" : "", known.c_str());
}

std::vector<std::string> shape_name_list() {
  std::vector<std::string> names;
  for (const NamedShape& row : kShapes) names.emplace_back(row.name);
  return names;
}

}  // namespace doppler::formats
