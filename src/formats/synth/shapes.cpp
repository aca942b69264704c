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
