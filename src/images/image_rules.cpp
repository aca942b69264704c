#include "images/image_rules.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace doppler::images {
namespace {

constexpr int64_t kMostEdge = 1 << 15;
constexpr int64_t kMostPixels = int64_t{1} << 28;
constexpr int64_t kMostTiles = 256;
constexpr uint32_t kMostPatch = 64;

// A file and what messages call it.
struct Named {
  const Json& json;
  const char* file;
};

Named preprocessor_of(const RuleSources& sources) {
  return {sources.preprocessor, "preprocessor_config.json"};
}
Named config_of(const RuleSources& sources) { return {sources.config, "config.json"}; }
Named vision_of(const RuleSources& sources) {
  static const Json kNone;
  const Json* vision = find(sources.config, "vision_config");
  return {vision ? *vision : kNone, "config.json's vision_config"};
}

Result<int64_t> need_count(const Named& from, std::string_view key, int64_t most) {
  const std::string name(key);
  const Json* found = find(from.json, key);
  if (found && found->is_array() && found->size() != 0) found = &found->front();  // both edges
  if (!found || found->is_null()) {
    return fail(ErrorKind::kInvalidInput, "%s has no field \"%s\", which says how pictures are prepared.",
                from.file, name.c_str());
  }
  const double value = found->is_number() ? found->get<double>() : 0;
  if (!(value >= 1 && value <= static_cast<double>(most)) || value != std::floor(value)) {
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" of %s is not a whole number from 1 to %lld.",
                name.c_str(), from.file, static_cast<long long>(most));
  }
  return static_cast<int64_t>(value);
}

Result<uint32_t> need_edge(const Named& from, std::string_view key) {
  DP_TRY(const int64_t value, need_count(from, key, kMostEdge));
  return static_cast<uint32_t>(value);
}

// A field of an object in a field.
Result<uint32_t> need_edge_of(const Named& from, std::string_view key, std::string_view edge) {
  const Json* object = find(from.json, key);
  if (object && object->is_number()) return need_edge(from, key);
  static const Json kNone;
  const std::string file = format_text("%s's %s", from.file, std::string(key).c_str());
  return need_edge({object ? *object : kNone, file.c_str()}, edge);
}

Result<double> need_number(const Named& from, std::string_view key, double least, double most) {
  const Json* found = find(from.json, key);
  const double value = found && found->is_number() ? found->get<double>() : NAN;
  if (value >= least && value <= most) return value;
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" of %s is not a number from %g to %g.",
              std::string(key).c_str(), from.file, least, most);
}

Result<void> read_channels(const Named& from, std::string_view key, double least,
                           std::array<double, kChannels>& out) {
  const Json* found = find(from.json, key);
  bool fits = found && found->is_array() && found->size() == kChannels;
  for (size_t i = 0; fits && i < kChannels; ++i) {
    fits = (*found)[i].is_number();
    if (fits) out[i] = (*found)[i].get<double>();
    fits = fits && out[i] >= least && out[i] <= 1e6;
  }
  if (fits) return {};
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" of %s is not a list of %u numbers, a channel each.",
              std::string(key).c_str(), from.file, kChannels);
}

Result<bool> truth_or(const Named& from, std::string_view key, bool otherwise) {
  DP_TRY(const auto value, get_bool(from.json, key));
  return value.value_or(otherwise);
}

// Steps that every row takes.
Result<void> check_steps(const Named& from) {
  for (const char* step : {"do_rescale", "do_resize"}) {
    DP_TRY(const bool is_on, truth_or(from, step, true));
    if (!is_on) {
      return fail(ErrorKind::kUnsupported, "Field \"%s\" of %s is false; allowed is true.", step, from.file);
    }
  }
  DP_TRY(const auto factor, get_number(from.json, "rescale_factor"));
  if (factor && std::fabs(*factor * 255 - 1) > 1e-6) {
    return fail(ErrorKind::kUnsupported, "Field \"rescale_factor\" of %s is %g; allowed is 1/255.", from.file,
                *factor);
  }
  return {};
}

Result<void> read_normalisation(const Named& from, ImageRules& rules) {
  DP_TRY(const bool normalises, truth_or(from, "do_normalize", true));
  if (!normalises) return {};
  DP_CHECK(read_channels(from, "image_mean", -1e6, rules.mean));
  return read_channels(from, "image_std", 1e-6, rules.deviation);
}

// Pillow's numbers.
Result<Filter> read_filter(const Named& from, Filter otherwise) {
  DP_TRY(const auto number, get_integer(from.json, "resample"));
  if (!number) return otherwise;
  if (*number == 1) return Filter::kLanczos;
  if (*number == 2) return Filter::kBilinear;
  if (*number == 3) return Filter::kBicubic;
  return fail(ErrorKind::kUnsupported,
              "Field \"resample\" of %s is %lld; allowed are 1 (Lanczos), 2 (bilinear) and 3 (bicubic).",
              from.file, static_cast<long long>(*number));
}

Result<void> read_pixel_limits(const Named& from, ImageRules& rules) {
  const Json* size = find(from.json, "size");
  const bool is_named = size && size->is_object() && size->contains("shortest_edge");
  const Named limits = is_named ? Named{*size, "preprocessor_config.json's size"} : from;
  DP_TRY(const int64_t least, need_count(limits, is_named ? "shortest_edge" : "min_pixels", kMostPixels));
  DP_TRY(const int64_t most, need_count(limits, is_named ? "longest_edge" : "max_pixels", kMostPixels));
  if (most < least) {
    return fail(ErrorKind::kInvalidInput, "%s allows at least %lld pixels and at most %lld.", limits.file,
                static_cast<long long>(least), static_cast<long long>(most));
  }
  rules.least_pixels = static_cast<uint64_t>(least);
  rules.most_pixels = static_cast<uint64_t>(most);
  return {};
}

Result<void> read_qwen(const RuleSources& sources, ImageRules& rules) {
  const Named from = preprocessor_of(sources);
  DP_TRY(rules.patch, need_edge(from, "patch_size"));
  DP_TRY(rules.block, need_edge(from, "merge_size"));
  DP_TRY(rules.copies, need_edge(from, "temporal_patch_size"));
  return read_pixel_limits(from, rules);
}

// Patches of the tower, in blocks of so many along each axis.
Result<void> read_patches(const RuleSources& sources, uint32_t block, ImageRules& rules) {
  DP_TRY(rules.patch, need_edge(vision_of(sources), "patch_size"));
  rules.block = block;
  return {};
}

Result<void> read_square(const RuleSources& sources, ImageRules& rules) {
  const Named from = preprocessor_of(sources);
  DP_TRY(rules.size.width, need_edge_of(from, "size", "width"));
  DP_TRY(rules.size.height, need_edge_of(from, "size", "height"));
  return read_patches(sources, 1, rules);
}

Result<void> read_pan_and_scan(const Named& from, ImageRules::PanAndScan& pan) {
  const auto says = [&](const char* key) {
    const Json* value = find(from.json, key);
    return value && !value->is_null();
  };
  if (says("pan_and_scan_min_ratio_to_activate")) {
    DP_TRY(pan.least_ratio, need_number(from, "pan_and_scan_min_ratio_to_activate", 1, 1000));
  }
  if (says("pan_and_scan_min_crop_size")) {
    DP_TRY(pan.least_crop, need_edge(from, "pan_and_scan_min_crop_size"));
  }
  if (says("pan_and_scan_max_num_crops")) {
    DP_TRY(const int64_t crops, need_count(from, "pan_and_scan_max_num_crops", kMostTiles));
    pan.most_crops = static_cast<uint32_t>(crops);
  }
  return {};
}

Result<void> read_gemma3(const RuleSources& sources, ImageRules& rules) {
  DP_CHECK(read_square(sources, rules));
  DP_TRY(const int64_t tokens, need_count(config_of(sources), "mm_tokens_per_image", kMostEdge));
  const auto side = static_cast<uint32_t>(std::lround(std::sqrt(static_cast<double>(tokens))));
  const uint32_t patches = rules.size.width / rules.patch;
  if (rules.size.width != rules.size.height || side * side != tokens || patches % side != 0) {
    return fail(ErrorKind::kUnsupported, "Pictures of %u x %u pixels have no square of %lld tokens.",
                rules.size.width, rules.size.height, static_cast<long long>(tokens));
  }
  rules.block = patches / side;
  return read_pan_and_scan(preprocessor_of(sources), rules.pan_and_scan);
}

Result<void> read_idefics(const RuleSources& sources, ImageRules& rules) {
  const Named from = preprocessor_of(sources);
  DP_TRY(rules.longest_edge, need_edge_of(from, "size", "longest_edge"));
  DP_TRY(rules.tile_edge, need_edge_of(from, "max_image_size", "longest_edge"));
  DP_TRY(rules.splits, truth_or(from, "do_image_splitting", true));
  DP_TRY(const uint32_t scale, need_edge(config_of(sources), "scale_factor"));
  return read_patches(sources, scale, rules);
}

Result<void> read_lfm2(const RuleSources& sources, ImageRules& rules) {
  const Named from = preprocessor_of(sources);
  DP_TRY(rules.patch, need_edge(from, "encoder_patch_size"));
  DP_TRY(rules.block, need_edge(from, "downsample_factor"));
  DP_TRY(rules.tile_edge, need_edge(from, "tile_size"));
  DP_TRY(const int64_t least, need_count(from, "min_image_tokens", kMostEdge));
  DP_TRY(const int64_t most, need_count(from, "max_image_tokens", kMostEdge));
  const uint64_t token_pixels = uint64_t{rules.patch} * rules.block * rules.patch * rules.block;
  rules.least_pixels = static_cast<uint64_t>(least) * token_pixels;
  rules.most_pixels = static_cast<uint64_t>(most) * token_pixels;
  DP_TRY(rules.splits, truth_or(from, "do_image_splitting", true));
  DP_TRY(rules.tolerance, need_number(from, "max_pixels_tolerance", 1, 1000));
  DP_TRY(const int64_t least_tiles, need_count(from, "min_tiles", kMostTiles));
  DP_TRY(const int64_t most_tiles, need_count(from, "max_tiles", kMostTiles));
  rules.least_tiles = static_cast<uint32_t>(least_tiles);
  rules.most_tiles = static_cast<uint32_t>(most_tiles);
  DP_TRY(const bool has_overview, truth_or(from, "use_thumbnail", true));
  if (has_overview) return {};
  return fail(ErrorKind::kUnsupported, "Field \"use_thumbnail\" of %s is false; allowed is true.", from.file);
}

Result<void> read_internvl(const RuleSources& sources, ImageRules& rules) {
  DP_CHECK(read_square(sources, rules));
  rules.tile_edge = rules.size.width;
  const Named from = preprocessor_of(sources);
  DP_TRY(const int64_t least, need_count(from, "min_patches", kMostTiles));
  DP_TRY(const int64_t most, need_count(from, "max_patches", kMostTiles));
  rules.least_tiles = static_cast<uint32_t>(least);
  rules.most_tiles = static_cast<uint32_t>(most);
  DP_TRY(const double ratio, need_number(config_of(sources), "downsample_ratio", 1.0 / kMostPatch, 1));
  rules.block = static_cast<uint32_t>(std::lround(1 / ratio));
  return {};
}

Result<void> read_pixtral(const RuleSources& sources, ImageRules& rules) {
  DP_TRY(rules.longest_edge, need_edge_of(preprocessor_of(sources), "size", "longest_edge"));
  uint32_t block = 1;
  if (sources.config.contains("spatial_merge_size")) {
    DP_TRY(block, need_edge(config_of(sources), "spatial_merge_size"));
  }
  return read_patches(sources, block, rules);
}

Result<void> read_clip(const RuleSources& sources, ImageRules& rules) {
  const Named from = preprocessor_of(sources);
  DP_TRY(rules.shortest_edge, need_edge_of(from, "size", "shortest_edge"));
  DP_TRY(const bool crops, truth_or(from, "do_center_crop", true));
  if (!crops) {
    return fail(ErrorKind::kUnsupported, "Field \"do_center_crop\" of %s is false; allowed is true.",
                from.file);
  }
  DP_TRY(rules.crop.width, need_edge_of(from, "crop_size", "width"));
  DP_TRY(rules.crop.height, need_edge_of(from, "crop_size", "height"));
  return read_patches(sources, 1, rules);
}

Result<void> read_gemma4(const RuleSources& sources, ImageRules& rules) {
  const Named from = preprocessor_of(sources);
  DP_TRY(rules.patch, need_edge(from, "patch_size"));
  DP_TRY(rules.block, need_edge(from, "pooling_kernel_size"));
  DP_TRY(rules.most_tokens, need_edge(from, "max_soft_tokens"));
  return {};
}

constexpr ImageFamily kFamilies[] = {
    {.model_type = "qwen2_5_vl", .reads_filter = false, .read = read_qwen, .plan = plan_qwen},
    {.model_type = "qwen3_vl", .reads_filter = false, .read = read_qwen, .plan = plan_qwen},
    {.model_type = "qwen3_5", .reads_filter = false, .read = read_qwen, .plan = plan_qwen},
    {.model_type = "glm4v", .reads_filter = false, .read = read_qwen, .plan = plan_glm},
    {.model_type = "glm46v", .reads_filter = false, .read = read_qwen, .plan = plan_glm},
    {.model_type = "gemma3",
     .filter = Filter::kBilinear,
     .pans_and_scans = true,
     .read = read_gemma3,
     .plan = plan_fixed},
    {.model_type = "paligemma", .read = read_square, .plan = plan_fixed},
    {.model_type = "smolvlm",
     .filter = Filter::kLanczos,
     .kind = ResizeKind::kPillow,
     .read = read_idefics,
     .plan = plan_idefics},
    {.model_type = "idefics3",
     .filter = Filter::kLanczos,
     .kind = ResizeKind::kPillow,
     .read = read_idefics,
     .plan = plan_idefics},
    {.model_type = "lfm2_vl",
     .filter = Filter::kBilinear,
     .values = PatchValues::kChannelsLast,
     .read = read_lfm2,
     .plan = plan_lfm2},
    {.model_type = "internvl", .read = read_internvl, .plan = plan_internvl},
    {.model_type = "mistral3", .read = read_pixtral, .plan = plan_pixtral},
    {.model_type = "pixtral", .read = read_pixtral, .plan = plan_pixtral},
    {.model_type = "llava", .read = read_clip, .plan = plan_clip},
    {.model_type = "gemma4",
     .reads_filter = false,
     .values = PatchValues::kChannelsLast,
     .is_recentred = true,
     .read = read_gemma4,
     .plan = plan_gemma4},
};

// LLaVA with Pixtral's tower has Pixtral's rules.
std::string model_type_of(const Json& config) {
  const auto text = [](const Json* value) { return value && value->is_string() ? value->text() : ""; };
  const std::string type = text(find(config, "model_type"));
  const Json* vision = find(config, "vision_config");
  const bool is_pixtral = type == "llava" && vision && text(find(*vision, "model_type")) == "pixtral";
  return is_pixtral ? "pixtral" : type;
}

const ImageFamily* find_family(std::string_view model_type) {
  const auto* found = std::ranges::find(kFamilies, model_type, &ImageFamily::model_type);
  return found == std::end(kFamilies) ? nullptr : found;
}

Result<void> check_bounds(const ImageRules& rules) {
  if (rules.patch > kMostPatch || rules.block > kMostPatch || rules.copies > kMostPatch) {
    return fail(
        ErrorKind::kInvalidInput,
        "Patches have %u pixels an edge, %u of them an edge of a token, and %u copies; allowed is up to %u.",
        rules.patch, rules.block, rules.copies, kMostPatch);
  }
  const uint32_t factor = rules.patch * rules.block;
  for (const uint32_t edge :
       {rules.size.width, rules.size.height, rules.tile_edge, rules.crop.width, rules.crop.height}) {
    if (edge != 0 && edge / factor == 0) {
      return fail(ErrorKind::kInvalidInput, "Pictures of %u pixels an edge have no token of %u x %u pixels.",
                  edge, factor, factor);
    }
  }
  if (rules.least_tiles > rules.most_tiles) {
    return fail(ErrorKind::kInvalidInput, "Pictures are cut in at least %u tiles and at most %u.",
                rules.least_tiles, rules.most_tiles);
  }
  return {};
}

// The rows' model types that `takes` takes, in a sentence.
std::string type_names(bool (*takes)(const ImageFamily& row)) {
  std::string names;
  for (const ImageFamily& row : kFamilies) {
    if (takes(row)) names += (names.empty() ? "" : ", ") + std::string(row.model_type);
  }
  return names;
}

}  // namespace

Result<ImageRules> with_pan_and_scan(const ImageRules& rules, std::optional<bool> asked) {
  ImageRules out = rules;
  out.pan_and_scan.is_on = asked.value_or(rules.pan_and_scan.is_on);
  if (!out.pan_and_scan.is_on || rules.family->pans_and_scans) return out;
  return fail(ErrorKind::kUnsupported,
              "Pictures of the model type \"%s\" have no pan and scan (--pan-and-scan); those of %s have.",
              std::string(rules.family->model_type).c_str(),
              type_names([](const ImageFamily& row) { return row.pans_and_scans; }).c_str());
}

bool has_image_rules(const Json& config) { return find_family(model_type_of(config)) != nullptr; }

Result<ImageRules> read_image_rules(const RuleSources& sources) {
  const std::string type = model_type_of(sources.config);
  const ImageFamily* family = find_family(type);
  if (!family) {
    return fail(ErrorKind::kUnsupported, "Pictures of the model type \"%s\" are not known; known are %s.",
                type.c_str(), type_names([](const ImageFamily&) { return true; }).c_str());
  }
  const Named from = preprocessor_of(sources);
  DP_CHECK(check_steps(from));
  ImageRules rules{.family = family, .resize = {.filter = family->filter, .kind = family->kind}};
  if (family->reads_filter) {
    DP_TRY(rules.resize.filter, read_filter(from, family->filter));
  }
  DP_CHECK(read_normalisation(from, rules));
  DP_CHECK(family->read(sources, rules));
  DP_CHECK(check_bounds(rules));
  return rules;
}

}  // namespace doppler::images
