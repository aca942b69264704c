// Reads the towers of models that see: the rows of tower_rows.h, and what their configurations say.
#include "formats/architectures/tower.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/rows.h"
#include "formats/architectures/tensor_names.h"
#include "formats/architectures/towers/tower_numbers.h"
#include "formats/architectures/towers/tower_rows.h"

namespace doppler::formats {
namespace {

using towers::count_or;
using towers::read_qwen;
using towers::read_text_dim;
using towers::set_patch;

constexpr uint32_t kMostTowerLayers = 256, kMostWidth = 1 << 16, kMostBlock = 64, kMostTableSide = 1 << 10;
// A file may have one of these prefixes before a row's own.
constexpr const char* kOuterPrefixes[] = {"", "model."};
constexpr uint32_t kChannels = 3, kMostPatch = 64, kMostCopies = 8;

Result<void> check_tower(const ModelConfig& c) {
  const uint32_t whole = architecture_of(c).rotates ? 4 : 1;  // pairs turn by rows and by columns
  const bool has_heads = c.n_heads != 0 && c.hidden_dim % c.n_heads == 0 && c.head_dim % whole == 0;
  const bool is_bounded = c.n_layers >= 1 && c.n_layers <= kMostTowerLayers && c.hidden_dim <= kMostWidth &&
                          c.ffn_dim >= 1 && c.ffn_dim <= kMostWidth && c.tower.patch_values >= 1 &&
                          c.tower.patch_values <= kMostWidth && c.tower.block >= 1 &&
                          c.tower.block <= kMostBlock && c.tower.image_dim >= 1 &&
                          c.tower.image_dim <= kMostWidth && c.tower.table_side <= kMostTableSide &&
                          uint64_t{merged_patches(c)} * c.hidden_dim <= kMostWidth;
  if (has_heads && is_bounded) return {};
  return fail(
      ErrorKind::kInvalidInput,
      "A vision tower has %u layers of %u values (%u heads, feed-forward %u), patches of %u values in "
      "blocks of %u, and rows of %u for the text model: these numbers do not fit.",
      c.n_layers, c.hidden_dim, c.n_heads, c.ffn_dim, c.tower.patch_values, c.tower.block, c.tower.image_dim);
}

Result<void> check_channels(const Json& vision) {
  for (const char* key : {"in_channels", "num_channels", "in_chans"}) {
    DP_TRY(const uint32_t channels, count_or(vision, key, kChannels));
    if (channels == kChannels) continue;
    return fail(ErrorKind::kUnsupported, "Field \"%s\" is %u; allowed is %u.", key, channels, kChannels);
  }
  return {};
}

Result<void> read_table_side(uint32_t positions, ModelConfig& c) {
  c.tower.table_side = static_cast<uint32_t>(std::lround(std::sqrt(static_cast<double>(positions))));
  c.ctx_len = positions;
  if (uint64_t{c.tower.table_side} * c.tower.table_side == positions) return {};
  return fail(ErrorKind::kInvalidInput, "A table of %u learned positions is no square.", positions);
}

Result<std::vector<uint32_t>> get_layers(const Json& json, const char* key, uint32_t n_layers) {
  DP_TRY(const std::vector<double> layers, get_numbers(json, key));
  std::vector<uint32_t> out;
  for (const double layer : layers) {
    if (!(layer >= 0 && layer < n_layers) || layer != std::floor(layer)) {
      return fail(ErrorKind::kInvalidInput, "Field \"%s\" names layer %g of %u.", key, layer, n_layers);
    }
    out.push_back(static_cast<uint32_t>(layer));
  }
  return out;
}

Result<void> read_qwen3_vl(const Json&, const Json& vision, ModelConfig& c) {
  DP_CHECK(read_qwen(vision, c));
  DP_TRY(const uint32_t positions, required_count(vision, "num_position_embeddings"));
  DP_CHECK(read_table_side(positions, c));
  DP_TRY(c.tower.deepstack, get_layers(vision, "deepstack_visual_indexes", c.n_layers));
  return {};
}

// fullatt_block_indexes: the layers that see all of a picture; the others see a window of so many pixels.
Result<void> read_qwen2_5_vl(const Json&, const Json& vision, ModelConfig& c) {
  DP_CHECK(read_qwen(vision, c));
  DP_TRY(const uint32_t window, required_count(vision, "window_size"));
  DP_TRY(const uint32_t patch, required_count(vision, "patch_size"));
  c.tower.window = window / patch / std::max(c.tower.block, 1u);
  if (c.tower.window == 0 || c.tower.window > kMostTableSide) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"window_size\" is %u pixels: %u tokens; allowed are 1 to %u tokens.", window,
                c.tower.window, kMostTableSide);
  }
  c.sliding_window = c.tower.window * c.tower.window;
  c.is_sliding.assign(c.n_layers, 1);
  DP_TRY(const std::vector<uint32_t> whole, get_layers(vision, "fullatt_block_indexes", c.n_layers));
  for (const uint32_t layer : whole) c.is_sliding[layer] = 0;
  return {};
}

// Numbers of the same names in CLIP's and SigLIP's towers. transformers' defaults are those of its CLIPVisionConfig and
// SiglipVisionConfig.
Result<void> read_blocks(const Json& vision, double usual_eps, const char* activation, ModelConfig& c) {
  DP_TRY(c.n_layers, count_or(vision, "num_hidden_layers", 12));
  DP_TRY(c.hidden_dim, count_or(vision, "hidden_size", 768));
  DP_TRY(c.n_heads, count_or(vision, "num_attention_heads", 12));
  DP_TRY(c.ffn_dim, count_or(vision, "intermediate_size", 3072));
  DP_TRY(const double eps, number_or(vision, "layer_norm_eps", usual_eps));
  c.norm_eps = static_cast<float>(eps);
  DP_CHECK(require_text(vision, "hidden_act", activation));
  DP_TRY(const uint32_t patch, required_count(vision, "patch_size"));
  return set_patch(c, patch, 1);
}

Result<void> read_siglip(const Json& whole, const Json& vision, ModelConfig& c) {
  DP_CHECK(read_blocks(vision, 1e-6, "gelu_pytorch_tanh", c));
  return read_text_dim(whole, c);
}

// A table of an entry a patch, of pictures of one size.
Result<uint32_t> read_fixed_siglip(const Json& whole, const Json& vision, ModelConfig& c) {
  DP_CHECK(read_siglip(whole, vision, c));
  DP_TRY(const uint32_t patch, required_count(vision, "patch_size"));
  DP_TRY(const uint32_t size, required_count(vision, "image_size"));
  c.tower.table_side = size / patch;
  c.ctx_len = c.tower.table_side * c.tower.table_side;
  return c.tower.table_side;
}

Result<void> read_gemma3(const Json& whole, const Json& vision, ModelConfig& c) {
  DP_TRY(const uint32_t side, read_fixed_siglip(whole, vision, c));
  DP_TRY(const uint32_t tokens, required_count(whole, "mm_tokens_per_image"));
  const auto token_side = static_cast<uint32_t>(std::lround(std::sqrt(static_cast<double>(tokens))));
  if (token_side == 0 || token_side * token_side != tokens || side % token_side != 0) {
    return fail(ErrorKind::kUnsupported, "Pictures of %u x %u patches do not become a square of %u tokens.",
                side, side, tokens);
  }
  c.tower.block = side / token_side;
  c.tower.projector_eps = c.norm_eps;
  c.tower.sight = PictureSight::kTile;
  return {};
}

Result<void> read_paligemma(const Json& whole, const Json& vision, ModelConfig& c) {
  DP_CHECK(read_fixed_siglip(whole, vision, c));
  c.tower.sight = PictureSight::kPrompt;
  return {};
}

Result<void> read_idefics3(const Json& whole, const Json& vision, ModelConfig& c) {
  DP_CHECK(read_fixed_siglip(whole, vision, c));
  DP_TRY(c.tower.block, required_count(whole, "scale_factor"));
  return {};
}

Result<void> read_lfm2_vl(const Json& whole, const Json& vision, ModelConfig& c) {
  DP_CHECK(read_siglip(whole, vision, c));
  DP_TRY(const uint32_t positions, required_count(vision, "num_patches"));
  DP_CHECK(read_table_side(positions, c));
  DP_TRY(c.tower.block, required_count(whole, "downsample_factor"));
  DP_TRY(c.tower.projector_dim, required_count(whole, "projector_hidden_size"));
  DP_CHECK(require_text(whole, "projector_hidden_act", "gelu"));
  DP_CHECK(require_truth(whole, "projector_use_layernorm", true));
  c.tower.projector_eps = 1e-5f;
  return {};
}

Result<void> read_pixtral(const Json& whole, const Json& vision, ModelConfig& c) {
  DP_TRY(c.n_layers, count_or(vision, "num_hidden_layers", 24));
  DP_TRY(c.hidden_dim, count_or(vision, "hidden_size", 1024));
  DP_TRY(c.n_heads, count_or(vision, "num_attention_heads", 16));
  DP_TRY(c.ffn_dim, count_or(vision, "intermediate_size", 4096));
  DP_TRY(const uint32_t patch, count_or(vision, "patch_size", 16));
  DP_TRY(c.tower.block, count_or(whole, "spatial_merge_size", 1));
  DP_TRY(c.rope.theta, number_or(vision, "rope_theta", 10000));
  const Json* text = find(whole, "text_config");
  DP_TRY(c.tower.image_dim, required_count(text ? *text : whole, "hidden_size"));
  DP_TRY(const double eps, number_or(text ? *text : whole, "rms_norm_eps", 1e-5));
  c.tower.projector_eps = static_cast<float>(eps);
  c.norm_eps = 1e-5f;
  DP_CHECK(require_text(vision, "hidden_act", "silu"));
  DP_CHECK(require_text(whole, "projector_hidden_act", "gelu"));
  return set_patch(c, patch, 1);
}

// The blocks up to the layer that vision_feature_layer names, counted from the end; -1 is the last.
Result<void> keep_blocks(const Json& whole, ModelConfig& c) {
  DP_TRY(const auto layer, get_integer(whole, "vision_feature_layer"));
  const int64_t kept = int64_t{c.n_layers} + 1 + layer.value_or(-1);
  if (layer.value_or(-1) >= 0 || kept < 1) {
    return fail(ErrorKind::kUnsupported, "Field \"vision_feature_layer\" is %lld; allowed are -1 to -%u.",
                static_cast<long long>(*layer), c.n_layers);
  }
  c.n_layers = static_cast<uint32_t>(kept);
  return {};
}

// The table has the positions, the class token's embedding and, if has_bias, the bias of patches.
Result<void> read_class_row(const Json& whole, uint32_t side, bool has_bias, ModelConfig& c) {
  c.tower.has_class_row = true;
  c.tower.table_side = side;
  c.ctx_len = side * side + 2 + (has_bias ? 1 : 0);
  DP_CHECK(read_text_dim(whole, c));
  DP_CHECK(require_text(whole, "projector_hidden_act", "gelu"));
  DP_CHECK(require_text(whole, "vision_feature_select_strategy", "default"));
  return keep_blocks(whole, c);
}

Result<void> read_clip(const Json& whole, const Json& vision, ModelConfig& c) {
  DP_CHECK(read_blocks(vision, 1e-5, "quick_gelu", c));
  DP_TRY(const uint32_t patch, required_count(vision, "patch_size"));
  DP_TRY(const uint32_t size, required_count(vision, "image_size"));
  return read_class_row(whole, size / patch, /*has_bias=*/false, c);
}

// A number, or a list of two equal ones.
Result<uint32_t> read_edge(const Json& json, const char* key) {
  const Json* value = find(json, key);
  if (!value || !value->is_array()) return required_count(json, key);
  DP_TRY(const std::vector<double> edges, get_numbers(json, key));
  if (edges.size() == 2 && edges[0] == edges[1] && edges[0] >= 1 && edges[0] <= kMostWidth)
    return static_cast<uint32_t>(edges[0]);
  return fail(ErrorKind::kUnsupported, "Field \"%s\" is %s; allowed is a square.", key,
              to_text(*value).c_str());
}

Result<void> read_internvl(const Json& whole, const Json& vision, ModelConfig& c) {
  DP_TRY(c.n_layers, required_count(vision, "num_hidden_layers"));
  DP_TRY(c.hidden_dim, required_count(vision, "hidden_size"));
  DP_TRY(c.n_heads, required_count(vision, "num_attention_heads"));
  DP_TRY(c.ffn_dim, required_count(vision, "intermediate_size"));
  DP_TRY(const double eps, number_or(vision, "layer_norm_eps", 1e-6));
  c.norm_eps = static_cast<float>(eps);
  c.tower.projector_eps = 1e-5f;
  DP_CHECK(require_text(vision, "hidden_act", "gelu"));
  DP_CHECK(require_text(vision, "norm_type", "layer_norm"));
  DP_CHECK(require_truth(vision, "use_qk_norm", false));
  DP_TRY(const uint32_t patch, read_edge(vision, "patch_size"));
  DP_TRY(const uint32_t size, read_edge(vision, "image_size"));
  DP_TRY(const double ratio, number_or(whole, "downsample_ratio", 0.5));
  if (!(ratio > 0 && ratio <= 1) || 1 / ratio != std::floor(1 / ratio)) {
    return fail(ErrorKind::kUnsupported, "Field \"downsample_ratio\" is %g; allowed are 1, 1/2, 1/3, ...",
                ratio);
  }
  c.tower.block = static_cast<uint32_t>(1 / ratio);
  DP_CHECK(set_patch(c, patch, 1));
  DP_CHECK(read_class_row(whole, size / std::max(patch, 1u), /*has_bias=*/true, c));
  c.tower.projector_dim = c.tower.image_dim;
  return {};
}

struct Kind {
  std::string_view model_type;
  const Architecture* row;
  Result<void> (*read)(const Json& whole, const Json& vision, ModelConfig& config);
};
constexpr Kind kKinds[] = {
    {"qwen3_vl", &towers::qwen3_vl, read_qwen3_vl},
    {"qwen3_5", &towers::qwen3_vl, read_qwen3_vl},
    {"qwen2_5_vl", &towers::qwen2_5_vl, read_qwen2_5_vl},
    {"gemma3", &towers::gemma3, read_gemma3},
    {"glm4v", &towers::glm4v, towers::read_glm4v},
    {"glm46v", &towers::glm4v, towers::read_glm4v},
    {"gemma4", &towers::gemma4, towers::read_gemma4},
    {"paligemma", &towers::paligemma, read_paligemma},
    {"llava", &towers::clip, read_clip},
    {"internvl", &towers::internvl, read_internvl},
    {"pixtral", &towers::pixtral, read_pixtral},
    {"mistral3", &towers::mistral3, read_pixtral},
    {"idefics3", &towers::idefics3, read_idefics3},
    {"smolvlm", &towers::idefics3, read_idefics3},
    {"lfm2_vl", &towers::lfm2_vl, read_lfm2_vl},
};

const Kind* find_kind(std::string_view model_type) {
  const auto* found = std::ranges::find(kKinds, model_type, &Kind::model_type);
  return found == std::end(kKinds) ? nullptr : found;
}

}  // namespace

Result<void> towers::set_patch(ModelConfig& c, uint32_t patch, uint32_t copies) {
  if (patch > kMostPatch || copies > kMostCopies || patch * copies == 0) {
    return fail(
        ErrorKind::kUnsupported,
        "Patches of %u x %u pixels, %u times, are not supported; allowed are up to %u pixels, %u times.",
        patch, patch, copies, kMostPatch, kMostCopies);
  }
  c.tower.patch_values = kChannels * copies * patch * patch;
  return {};
}

Result<uint32_t> towers::count_or(const Json& json, const char* key, uint32_t otherwise) {
  DP_TRY(const auto count, get_count(json, key));
  return count.value_or(otherwise);
}

Result<void> towers::read_text_dim(const Json& whole, ModelConfig& c) {
  const Json* text = find(whole, "text_config");
  DP_TRY(c.tower.image_dim, required_count(text ? *text : whole, "hidden_size"));
  return {};
}

Result<void> towers::read_qwen(const Json& vision, ModelConfig& c) {
  DP_TRY(c.n_layers, required_count(vision, "depth"));
  DP_TRY(c.hidden_dim, required_count(vision, "hidden_size"));
  DP_TRY(c.n_heads, required_count(vision, "num_heads"));
  DP_TRY(c.ffn_dim, required_count(vision, "intermediate_size"));
  DP_TRY(c.tower.block, required_count(vision, "spatial_merge_size"));
  DP_TRY(c.tower.image_dim, required_count(vision, "out_hidden_size"));
  DP_TRY(const uint32_t patch, required_count(vision, "patch_size"));
  DP_TRY(const uint32_t copies, required_count(vision, "temporal_patch_size"));
  return set_patch(c, patch, copies);
}

std::span<const Architecture* const> towers::rows() {
  static constexpr const Architecture* kRows[] = {&qwen2_5_vl, &qwen3_vl, &gemma3,  &clip,
                                                  &internvl,   &idefics3, &lfm2_vl, &pixtral,
                                                  &mistral3,   &glm4v,    &gemma4,  &paligemma};
  return kRows;
}

Result<std::optional<ModelConfig>> read_tower_numbers(const Json& whole) {
  const Json* vision = find(whole, "vision_config");
  DP_TRY(auto model_type, get_string(whole, "model_type"));
  if (model_type == "llava" && vision && vision->is_object()) {  // a name for any tower
    DP_TRY(const auto of_tower, get_string(*vision, "model_type"));
    if (of_tower == "pixtral") model_type = of_tower;
  }
  const Kind* kind = model_type ? find_kind(*model_type) : nullptr;
  if (!kind || !vision || !vision->is_object()) return std::nullopt;
  ModelConfig config;
  config.family = kind->row->family;
  config.architecture = *model_type;
  config.activation = kind->row->activation;
  config.norm_eps = 1e-6f;
  config.bidirectional = true;
  DP_CHECK_WHILE(check_channels(*vision), "reading vision_config");
  DP_CHECK_WHILE(kind->read(whole, *vision, config), "reading vision_config");
  config.n_kv_heads = config.n_heads;
  config.head_dim = config.n_heads == 0 ? 0 : config.hidden_dim / config.n_heads;
  DP_CHECK(check_tower(config));
  if (config.attention_scale == 0) config.attention_scale = usual_attention_scale(config);
  config.rope.rotary_dim = kind->row->rotates ? config.head_dim : 0;
  return config;
}

Result<std::optional<ModelConfig>> read_tower(const VisionFiles& files) {
  const Checkpoint& checkpoint = *files.tensors;
  DP_TRY(auto config, read_tower_numbers(files.config));
  if (!config) return std::nullopt;
  config->name = checkpoint.name();
  config->gguf_names = checkpoint.gguf() != nullptr;
  if (config->gguf_names) return config;
  for (const char* prefix : kOuterPrefixes) {
    config->huggingface_head_prefix = prefix;
    config->huggingface_prefix = prefix + std::string(architecture_of(*config).huggingface.prefix);
    if (checkpoint.find(tensor_name(*config, TensorId::kPatchEmbed, 0))) return config;
  }
  return std::nullopt;
}

}  // namespace doppler::formats
