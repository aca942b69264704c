// Keys and their order are those of llama.cpp's converter, read in 2026-11.
#include "formats/convert/projector_header.h"

#include <algorithm>
#include <cmath>

#include "formats/architectures/json_fields.h"
#include "formats/architectures/tower.h"
#include "formats/projector/projector.h"
#include "formats/projector/projector_config.h"

namespace doppler::formats {
namespace {

constexpr uint32_t kUsualBlock = 2, kUsualGemmaBlock = 4;

std::string key_of(std::string_view name) { return "clip.vision." + std::string(name); }

void add_block(const ModelConfig& tower, GgufHeader& header) {
  header.add_u32(key_of("spatial_merge_size"), tower.tower.block);
}

Result<void> write_unusual_block(const ModelConfig& tower, const VisionFiles&, GgufHeader& header) {
  if (tower.tower.block != kUsualBlock) add_block(tower, header);
  return {};
}

Result<void> write_scale(const ModelConfig& tower, const VisionFiles&, GgufHeader& header) {
  header.add_u32(key_of("projector.scale_factor"), tower.tower.block);
  return {};
}

Result<void> write_gemma3(const ModelConfig& tower, const VisionFiles& files, GgufHeader& header) {
  return tower.tower.block == kUsualGemmaBlock ? Result<void>() : write_scale(tower, files, header);
}

Result<void> write_idefics3(const ModelConfig& tower, const VisionFiles& files, GgufHeader& header) {
  DP_CHECK(write_scale(tower, files, header));
  const Json* size = find(files.preprocessor, "size");
  DP_TRY(const uint32_t longest, required_count(size ? *size : files.preprocessor, "longest_edge"));
  header.add_u32(key_of("preproc_image_size"), longest);
  return {};
}

Result<void> write_pixtral(const ModelConfig& tower, const VisionFiles&, GgufHeader& header) {
  if (tower.tower.block != 1) add_block(tower, header);
  return {};
}

// The first layer that sees all of a picture ends the first run of layers, which all runs are as long as.
Result<void> write_qwen2_5_vl(const ModelConfig& tower, const VisionFiles& files, GgufHeader& header) {
  const auto whole = std::ranges::find(tower.is_sliding, 0) - tower.is_sliding.begin();
  header.add_u32(key_of("n_wa_pattern"), static_cast<uint32_t>(whole) + 1);
  return write_unusual_block(tower, files, header);
}

Result<void> write_qwen3_vl(const ModelConfig& tower, const VisionFiles&, GgufHeader& header) {
  add_block(tower, header);
  std::vector<uint8_t> early(tower.n_layers, 0);
  for (const uint32_t layer : tower.tower.deepstack) early[layer] = 1;
  header.add_bools(key_of("is_deepstack_layers"), early);
  return {};
}

constexpr std::string_view kGelu = "clip.use_gelu", kSilu = "clip.use_silu";
constexpr ProjectorKind kKinds[] = {
    {.family = "qwen2_5_vl_tower",
     .projector = "qwen2.5vl_merger",
     .activation = kSilu,
     .copies = 2,
     .image_size = 560,
     .write = write_qwen2_5_vl},
    {.family = "qwen3_vl_tower",
     .projector = "qwen3vl_merger",
     .activation = kGelu,
     .copies = 2,
     .write = write_qwen3_vl},
    {.family = "glm4v_tower",
     .projector = "glm4v",
     .activation = kSilu,
     .copies = 2,
     .has_wide_projector = true,
     .write = write_unusual_block},
    {.family = "gemma3_tower", .projector = "gemma3", .activation = kGelu, .write = write_gemma3},
    {.family = "idefics3_tower", .projector = "idefics3", .activation = kGelu, .write = write_idefics3},
    {.family = "pixtral_tower", .projector = "pixtral", .activation = kSilu, .write = write_pixtral},
    {.family = "mistral3_tower", .projector = "pixtral", .activation = kSilu, .write = write_pixtral},
    {.family = "lfm2_vl_tower",
     .projector = "lfm2",
     .activation = kGelu,
     .image_size = 256,
     .write = write_scale},
};

uint32_t patch_edge(const ProjectorKind& kind, const ModelConfig& tower) {
  return static_cast<uint32_t>(std::lround(std::sqrt(tower.tower.patch_values / (3.0 * kind.copies))));
}

Result<uint32_t> image_size(const ProjectorKind& kind, const ModelConfig& tower, const VisionFiles& files) {
  DP_TRY(const auto said, get_count(files.config["vision_config"], "image_size"));
  if (said) return *said;
  return kind.image_size != 0 ? kind.image_size : tower.tower.table_side * patch_edge(kind, tower);
}

Result<std::vector<float>> channels(const VisionFiles& files, const char* key) {
  DP_TRY(const std::vector<double> values, get_numbers(files.preprocessor, key));
  if (values.size() == 3) return std::vector<float>(values.begin(), values.end());
  return fail(ErrorKind::kInvalidInput, "preprocessor_config.json has no list \"%s\" of 3 numbers.", key);
}

struct TowerNumber {
  const char* what;
  double (*of)(const ModelConfig& tower);
};
constexpr TowerNumber kNumbers[] = {
    {"layers", [](const ModelConfig& c) -> double { return c.n_layers; }},
    {"width", [](const ModelConfig& c) -> double { return c.hidden_dim; }},
    {"heads", [](const ModelConfig& c) -> double { return c.n_heads; }},
    {"feed-forward width", [](const ModelConfig& c) -> double { return c.ffn_dim; }},
    {"epsilon of norms", [](const ModelConfig& c) -> double { return c.norm_eps; }},
    {"rotary base", [](const ModelConfig& c) { return c.rope.rotary_dim != 0 ? c.rope.theta : 0; }},
    {"number of positions", [](const ModelConfig& c) -> double { return c.ctx_len; }},
    {"values of a patch", [](const ModelConfig& c) -> double { return c.tower.patch_values; }},
    {"patches of a token", [](const ModelConfig& c) -> double { return c.tower.block; }},
    {"rows for the text model", [](const ModelConfig& c) -> double { return c.tower.image_dim; }},
    {"width of the projector", [](const ModelConfig& c) -> double { return c.tower.projector_dim; }},
    {"epsilon of the projector", [](const ModelConfig& c) -> double { return c.tower.projector_eps; }},
    {"tokens of a window", [](const ModelConfig& c) -> double { return c.tower.window; }},
};

}  // namespace

Result<const ProjectorKind*> projector_kind(const ModelConfig& tower) {
  const auto* found = std::ranges::find(kKinds, tower.family, &ProjectorKind::family);
  if (found != std::end(kKinds)) return found;
  return fail(ErrorKind::kUnsupported,
              "GGUF has no place for the vision tower of the model type \"%s\"; --no-mmproj leaves it out.",
              printable(tower.architecture).c_str());
}

Result<GgufHeader> projector_header(const ProjectorKind& kind, const ModelConfig& tower,
                                    const VisionFiles& files, const std::string& name) {
  GgufHeader header;
  header.add_string("general.architecture", kProjectorArchitecture);
  header.add_string("general.type", "mmproj");
  header.add_string("general.name", name);
  header.add_bool("clip.has_vision_encoder", true);
  header.add_u32(key_of("projection_dim"), tower.tower.image_dim);
  DP_TRY(const uint32_t size, image_size(kind, tower, files));
  header.add_u32(key_of("image_size"), size);
  header.add_u32(key_of("patch_size"), patch_edge(kind, tower));
  header.add_u32(key_of("embedding_length"), tower.hidden_dim);
  header.add_u32(key_of("feed_forward_length"),
                 kind.has_wide_projector ? tower.tower.projector_dim : tower.ffn_dim);
  header.add_u32(key_of("block_count"), tower.n_layers);
  header.add_u32(key_of("attention.head_count"), tower.n_heads);
  for (const char* key : {"image_mean", "image_std"}) {
    DP_TRY(const std::vector<float> values, channels(files, key));
    header.add_f32s(key_of(key), values);
  }
  header.add_string("clip.projector_type", kind.projector);
  header.add_bool(kind.activation, true);
  header.add_f32(key_of("attention.layer_norm_epsilon"), tower.norm_eps);
  DP_CHECK(kind.write(tower, files, header));
  header.add_string(kProjectorPreprocessor, to_text(files.preprocessor));
  return header;
}

Result<void> check_tower_kept(const ModelConfig& tower, const Json& described) {
  DP_TRY(const auto got, read_tower_numbers(described));
  constexpr double kTolerance = 1e-6;  // GGUF has f32
  for (const TowerNumber& number : kNumbers) {
    const double wanted = number.of(tower), read = got ? number.of(*got) : 0;
    if (std::abs(wanted - read) <= kTolerance * std::abs(wanted)) continue;
    return fail(ErrorKind::kUnsupported,
                "GGUF has no place for a number of the vision tower (%s): %g would be read as %g.",
                number.what, wanted, read);
  }
  if (tower.tower.deepstack == got->tower.deepstack && tower.is_sliding == got->is_sliding) return {};
  return fail(ErrorKind::kUnsupported,
              "GGUF has no place for the layers of this vision tower that see windows, or have mergers.");
}

}  // namespace doppler::formats
