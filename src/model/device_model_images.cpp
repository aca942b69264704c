// DeviceModel's vision tower: when there is one, the graph of prompts with pictures, and what their plans read.
#include <algorithm>
#include <optional>
#include <type_traits>

#include "base/bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "families/families.h"
#include "formats/architectures/architecture.h"
#include "formats/architectures/rope_frequencies.h"
#include "formats/architectures/tower.h"
#include "formats/tower_padding.h"
#include "kernels/attention/attention.h"
#include "model/device_model.h"

namespace doppler::model {
namespace {

// Pictures' rows that are kept on the device, in bytes, and at least those of a step.
constexpr uint64_t kKeptBytes = 128ull << 20;

Result<images::ImageRules> read_rules(const formats::VisionFiles& files) {
  if (files.preprocessor.is_null()) {
    return fail(ErrorKind::kInvalidInput,
                "%s has no preprocessor_config.json, which says how pictures are prepared.",
                files.tensors->name().c_str());
  }
  return images::read_image_rules(
      {.config = files.config, .preprocessor = files.preprocessor, .processor = files.processor});
}

// The weights of the text model's graph by the nodes of `image_graph`, which has nodes of pictures between them.
lowering::BoundWeights with_image_nodes(const lowering::BoundWeights& bound,
                                        const graph::Graph& image_graph) {
  lowering::BoundWeights out{.vectors = bound.vectors, .ropes = bound.ropes};
  out.adapters.of_sequences = bound.adapters.of_sequences;
  // Node i of the text model's graph, or nothing for a node of pictures.
  const auto put = [](auto& to, const auto& from, std::optional<size_t> i) {
    if (!from.empty()) to.push_back(i ? from[*i] : typename std::decay_t<decltype(to)>::value_type());
  };
  size_t next = 0;
  for (const graph::Node& node : image_graph.nodes()) {
    const bool is_image = node.kind() == graph::OpKind::kImageRows;
    const std::optional<size_t> from = is_image ? std::nullopt : std::optional(next++);
    if (from && bound.host_rows && bound.host_rows->node == *from) {
      out.host_rows = {.node = static_cast<uint32_t>(out.products.size()),
                       .numbers = bound.host_rows->numbers};
    }
    put(out.products, bound.products, from);
    put(out.tables, bound.tables, from);
    put(out.head_norms, bound.head_norms, from);
    put(out.node_vectors, bound.node_vectors, from);
    put(out.adapters.products, bound.adapters.products, from);
  }
  return out;
}

// Patches of a tile at most, so that a device can bind their widest rows.
uint32_t most_patches(const formats::ModelConfig& tower, const gpu::Caps& caps) {
  const uint64_t widest = std::max({3 * tower.hidden_dim, 2 * tower.ffn_dim, tower.tower.patch_values});
  return static_cast<uint32_t>(
      std::min<uint64_t>(kMostPatches, caps.max_binding_bytes / (widest * sizeof(float))));
}

// The length of a rotation's table.
uint64_t steps_bytes(const formats::ModelConfig& config) { return config.rope.rotary_dim / 2 * 8ull; }

}  // namespace

bool DeviceModel::knows_image_token(uint32_t token) const { return images_ && images_->knows(token); }

Task<Result<void>> DeviceModel::load_images(const formats::Checkpoint& checkpoint,
                                            const LoadProgress& progress) {
  auto reading = formats::read_vision_files(checkpoint, options_.projector);
  DP_CO_TRY(const auto files, co_await std::move(reading));
  if (!files) co_return Result<void>();
  DP_CO_TRY(auto tower, formats::read_tower(*files));
  if (tower)
    tower->ffn_dim = formats::padded_feed_forward(tower->ffn_dim);  // as open_projector() left the tensors
  if (!tower) {
    const Json* vision = find(files->config, "vision_config");
    if (vision && vision->is_object()) {
      DP_CO_TRY(const auto type, get_string(files->config, "model_type"));
      log(LogLevel::kWarning, "%s reads no pictures: the vision tower of the model type \"%s\" is not known.",
          checkpoint.name().c_str(), type.value_or("").c_str());
    }
    co_return Result<void>();
  }
  std::string reason;  // why the model's plans have no pictures
  if (formats::is_embedding_model(config_)) reason = "it gives embeddings";
  if (reason.empty() && options_.expert_slots != 0) reason = "experts are paged";
  if (reason.empty() && tower->tower.image_dim != config_.hidden_dim) {
    reason = format_text("its tower makes rows of %u, and the model has %u", tower->tower.image_dim,
                         config_.hidden_dim);
  }
  if (!reason.empty()) {
    log(LogLevel::kWarning, "%s reads no pictures: %s.", checkpoint.name().c_str(), reason.c_str());
    co_return Result<void>();
  }
  DP_CO_TRY(const images::ImageRules told, read_rules(*files));
  DP_CO_TRY(images::ImageRules rules, images::with_pan_and_scan(told, options_.pan_and_scan));
  EncoderOptions encoder_options{.policy = options_.policy,
                                 .rules = options_.rules,
                                 .cache_format = options_.cache_format == kernels::CacheFormat::kF32
                                                     ? kernels::CacheFormat::kF32
                                                     : kernels::CacheFormat::kF16,
                                 .most_patches = most_patches(*tower, device_.caps())};
  const uint32_t merged = formats::merged_patches(*tower);
  if (images::limit_patches(rules, encoder_options.most_patches)) {
    log(LogLevel::kInfo, "Pictures are shrunk to %u patches (%u tokens); the model's files allow more.",
        encoder_options.most_patches, encoder_options.most_patches / merged);
  }
  const uint32_t most_tokens = images::most_tokens(rules), tile_tokens = images::most_tile_tokens(rules);
  encoder_options.most_patches = std::min(encoder_options.most_patches, tile_tokens * merged);
  UploadProgress on_upload;
  if (progress) on_upload = [&](uint64_t done, uint64_t total) { return progress("weights", done, total); };
  const uint64_t together = uint64_t{tile_tokens} + options_.max_sequences;
  if (tower->tower.sight != formats::PictureSight::kNothing && options_.chunk < together) {
    co_return fail(
        ErrorKind::kUnsupported,
        "A picture's %u tokens see each other and need a step that holds them all: the chunk (--chunk) is "
        "%u and must be at least %u.",
        tile_tokens, options_.chunk, static_cast<uint32_t>(together));
  }
  auto loading = ImageEncoder::load(device_, *files->tensors, std::move(*tower), std::move(rules),
                                    std::move(encoder_options), on_upload);
  DP_CO_TRY(std::unique_ptr<ImageEncoder> encoder, co_await std::move(loading));
  const uint64_t row_bytes = encoder->row_size() * sizeof(float);
  // The rows of a step's pictures, two pictures in part, if the device binds so many.
  const uint64_t rows =
      std::min(std::max<uint64_t>(kKeptBytes / row_bytes, options_.chunk + 2ull * most_tokens),
               device_.caps().max_binding_bytes / row_bytes);
  images_ = std::make_unique<ImageStore>(device_, std::move(encoder), static_cast<uint32_t>(rows));
  DP_CO_CHECK(co_await images_->make_buffer());
  options_.images = true;
  co_return Result<void>();
}

// After load_images(), which checks the family of models that read pictures.
Result<void> DeviceModel::check_pan_and_scan(const std::string& name) const {
  if (images_) return {};
  return fail(ErrorKind::kUnsupported, "Pan and scan (--pan-and-scan) is for pictures, and %s reads none.",
              name.c_str());
}

Task<Result<void>> DeviceModel::make_image_buffers(gpu::PlanBuilder& builder) {
  views_.images = builder.external(images_->buffer());
  DP_CO_TRY(image_places_,
            co_await buffer(builder, "image_places", step_rows() * 4ull, &views_.image_places));
  if (formats::has_axes(config_.rope)) {
    const uint64_t steps = steps_bytes(config_), sequences = std::max(1u, tables_.sequences);
    DP_CO_TRY(image_axes_, co_await buffer(builder, "image_axes",
                                           steps + step_rows() * kernels::kAxesRowBytes, &views_.image_axes));
    DP_CO_TRY(image_shifts_, co_await buffer(builder, "image_shifts",
                                             steps + sequences * kernels::kShiftBytes, &views_.image_shifts));
    DP_CO_TRY(const formats::RopeFrequencies frequencies,
              formats::rope_frequencies(config_.rope, options_.ctx_len, config_.ctx_len, {}));
    const std::vector<uint32_t> table = kernels::make_rope_table(frequencies.inv_freq);
    for (gpu::Buffer* each : {image_axes_, image_shifts_})
      DP_CO_CHECK(device_.write(*each, 0, bytes_of(table)));
  }
  if (images_->encoder().tower().tower.sight != formats::PictureSight::kNothing) {
    const uint64_t bytes = step_rows() * kernels::kSpanBytes;
    DP_CO_TRY(image_spans_, co_await buffer(builder, "image_spans", bytes, &views_.image_spans));
    DP_CO_TRY(image_window_spans_,
              co_await buffer(builder, "image_window_spans", bytes, &views_.image_window_spans));
  }
  co_return Result<void>();
}

Result<void> DeviceModel::make_image_graph() {
  DP_TRY(image_graph_, families::build_image_graph(config_, images_->encoder().tower()));
  image_bound_ = with_image_nodes(bound_, image_graph_);
  return {};
}

void DeviceModel::set_image_io(const PlanRow& row, lowering::StepIo& io) const {
  if (!images_) return;
  if (formats::has_axes(config_.rope)) {
    const auto places = has_many() ? kernels::RopePlaces::kShiftedBySlot : kernels::RopePlaces::kShifted;
    io.rope = {.places = places, .axes = {}, .table = views_.image_shifts};
  }
  if (!row.images) return;
  if (formats::has_axes(config_.rope)) {
    const auto& [time, height, width] = config_.rope.sections;
    io.rope = {.places = kernels::RopePlaces::kAxes,
               .axes = {.time = time,
                        .height = height,
                        .width = width,
                        .interleaved = config_.rope.interleaved_sections},
               .table = views_.image_axes};
  }
  io.images = {.images = views_.images,
               .places = views_.image_places,
               .n_images = images_->capacity(),
               .stride = images_->encoder().row_size()};
  if (image_spans_) io.spans = {.all = views_.image_spans, .windows = views_.image_window_spans};
}

ImageInputs DeviceModel::image_inputs() const {
  if (!images_) return {};
  return {.store = images_.get(),
          .places = image_places_,
          .axes = image_axes_,
          .shifts = image_shifts_,
          .steps_bytes = steps_bytes(config_),
          .spans = image_spans_,
          .window_spans = image_window_spans_,
          .window = config_.sliding_window,
          .image_row = config_.layer_input.image_row};
}

}  // namespace doppler::model
