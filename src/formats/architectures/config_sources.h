// ModelConfig from the two kinds of description, without a file: what read_config() (config.h) is made of, and what
// the converter and the synthetic models start from.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "formats/architectures/config.h"
#include "formats/gguf/gguf.h"

namespace doppler::formats {

// The shape of a tensor of the file, outermost first; null: there is none of that name.
using ShapeLookup = std::function<const std::vector<uint64_t>*(std::string_view name)>;

Result<ModelConfig> config_from_gguf(const GgufFile& gguf, const ShapeLookup& shape_of);

// The new spelling (rope_parameters, layer_types: transformers 5) and the old one (rope_theta, rope_scaling). The
// numbers of a model that also sees may stand in "text_config".
Result<ModelConfig> config_from_huggingface(const Json& config);

class GgufKeys;
struct GgufField;
// Sets config.pooling, if the model gives vectors, once the rest was read. json: a Checkpoint's config().
Result<void> read_pooling(const Json& json, const ShapeLookup& shape_of, ModelConfig& config);
Result<void> read_pooling(const GgufKeys& keys, const ShapeLookup& shape_of, ModelConfig& config);
// The same, and whether attention is causal, for a file that is written.
std::vector<GgufField> pooling_fields(const ModelConfig& config);

// Bounds of sizes that hold for every family.
Result<void> check_config(const ModelConfig& config);
// Bounds of scales and softcaps; both readers end with it.
Result<void> check_scales(const ModelConfig& config);

// Every `pattern`-th layer sees everything, the others slide; nothing where the config has no window. config.n_layers
// must be set. Error: a pattern of 0 or beyond 2^32-1.
Result<void> set_sliding_pattern(ModelConfig& config, int64_t pattern);

}  // namespace doppler::formats
