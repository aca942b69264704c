#include "formats/architectures/next_layer.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/tensor_names.h"

namespace doppler::formats {
namespace {

constexpr char kCount[] = "mtp_num_hidden_layers", kDedicated[] = "mtp_use_dedicated_embeddings";

// False where config.json speaks against it.
Result<bool> allows_next_layer(const Json& json) {
  DP_TRY(const auto count, get_count(json, kCount));
  DP_TRY(const bool dedicated, bool_or(json, kDedicated, false));
  return count.value_or(1) == 1 && !dedicated;
}

bool has_own_tables(const ShapeLookup& shape_of, const ModelConfig& config) {
  if (!config.gguf_names) return shape_of("mtp.embed_tokens.weight") || shape_of("mtp.lm_head.weight");
  const std::string prefix = format_text("blk.%u.nextn.", config.n_layers);
  return shape_of(prefix + "embed_tokens.weight") || shape_of(prefix + "shared_head_head.weight");
}

bool has_any_tensor(const ShapeLookup& shape_of, const ModelConfig& config) {
  return std::ranges::any_of(tensors_of(config), [&](const PlacedTensor& tensor) {
    return is_in_layer(tensor.row->id) && is_next_layer(config, tensor.layer) &&
           shape_of(tensor_name(config, tensor.row->id, tensor.layer));
  });
}

}  // namespace

Result<void> announce_next_layer(const Json& json, ModelConfig& config) {
  DP_TRY(const auto count, get_count(json, kCount));
  DP_TRY(const bool allowed, allows_next_layer(json));
  config.next_layers = count && allowed ? 1 : 0;
  return {};
}

Result<void> find_next_layer(const Json& json, const ShapeLookup& shape_of, ModelConfig& config) {
  if (!architecture_of(config).has_next_layer) return {};
  const Json* const text = find(json, "text_config");
  DP_TRY(const bool allowed, allows_next_layer(text && text->is_object() ? *text : json));
  config.next_layers = allowed ? 1 : 0;
  find_next_layer(shape_of, config);
  return {};
}

void find_next_layer(const ShapeLookup& shape_of, ModelConfig& config) {
  if (config.next_layers == 0) return;
  if (has_own_tables(shape_of, config) || !has_any_tensor(shape_of, config)) config.next_layers = 0;
}

}  // namespace doppler::formats
