// PlanRunner's vision tower: when there is one, the graph of prompts with pictures, and what their plans read.
#include <algorithm>

#include "base/bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "families/families.h"
#include "formats/architectures/rope_frequencies.h"
#include "formats/architectures/tower.h"
#include "model/plan_runner.h"

namespace doppler::model {
namespace {

// Pictures' rows that are kept on the device, in bytes, and at least those of a step.
constexpr uint64_t kKeptBytes = 128ull << 20;

Task<Result<Json>> read_object(const formats::Checkpoint& checkpoint, std::string file) {
  DP_CO_TRY(const auto text, co_await checkpoint.read_text(file));
  if (!text) co_return Json();
  DP_CO_TRY(Json json, parse_json(*text, file));
  co_return json;
}

Task<Result<images::ImageRules>> read_rules(const formats::Checkpoint& checkpoint) {
  DP_CO_TRY(Json preprocessor, co_await read_object(checkpoint, "preprocessor_config.json"));
  DP_CO_TRY(const Json processor, co_await read_object(checkpoint, "processor_config.json"));
  const Json* inner = find(processor, "image_processor");
  if (preprocessor.is_null() && inner) preprocessor = *inner;
  if (preprocessor.is_null()) {
    co_return fail(ErrorKind::kInvalidInput,
                   "%s has no preprocessor_config.json, which says how pictures are prepared.",
                   checkpoint.name().c_str());
  }
  co_return images::read_image_rules(
      {.config = checkpoint.config(), .preprocessor = preprocessor, .processor = processor});
}

// What the nodes of `graph` have, for `image_graph`, which has rows of pictures between them and the same weights.
lowering::BoundWeights with_image_nodes(const lowering::BoundWeights& bound, const graph::Graph& image_graph) {
  lowering::BoundWeights out{.vectors = bound.vectors, .ropes = bound.ropes};
  size_t from = 0;
  for (const graph::Node& node : image_graph.nodes()) {
    const bool is_image = node.kind() == graph::OpKind::kImageRows;
    out.products.push_back(is_image ? lowering::Projection{} : bound.products[from]);
    out.tables.push_back(is_image ? kernels::Weight{} : bound.tables[from]);
    out.head_norms.push_back(is_image ? kernels::TensorView{} : bound.head_norms[from]);
    out.node_vectors.push_back(is_image ? kernels::TensorView{} : bound.node_vectors[from]);
    if (!is_image) ++from;
  }
  return out;
}

// Why the model's plans have no pictures; "" if they have.
std::string refuse_images(const RunnerOptions& options, const formats::ModelConfig& config,
                          const formats::ModelConfig& tower) {
  if (options.max_sequences != 0 && tower.tower.sees_itself) {
    return "tokens of its pictures see each other, and several sequences share its steps";
  }
  if (formats::is_embedding_model(config)) return "it gives embeddings";
  return "";
}

}  // namespace

Task<Result<void>> PlanRunner::load_images(const formats::Checkpoint& checkpoint, const LoadProgress& progress) {
  const bool asked = options_.images;
  options_.images = false;
  if (!asked) co_return Result<void>();
  DP_CO_TRY(auto tower, formats::read_tower(checkpoint));
  if (!tower) co_return Result<void>();
  std::string reason = refuse_images(options_, config_, *tower);
  if (reason.empty() && expert_slots_ != 0) reason = "experts are paged";
  if (reason.empty() && tower->tower.image_dim != config_.hidden_dim) {
    reason = format_text("its tower makes rows of %u, and the model has %u", tower->tower.image_dim,
                         config_.hidden_dim);
  }
  if (!reason.empty()) {
    log(LogLevel::kWarning, "%s reads no pictures: %s.", checkpoint.name().c_str(), reason.c_str());
    co_return Result<void>();
  }
  DP_CO_TRY(images::ImageRules rules, co_await read_rules(checkpoint));
  EncoderOptions encoder_options{.policy = options_.policy,
                                 .rules = options_.rules,
                                 .cache_format = options_.cache_format == kernels::CacheFormat::kF32
                                                     ? kernels::CacheFormat::kF32
                                                     : kernels::CacheFormat::kF16};
  const uint32_t merged = formats::merged_patches(*tower);
  if (images::limit_patches(rules, encoder_options.most_patches)) {
    log(LogLevel::kInfo, "Pictures are shrunk to %u patches (%u tokens); the model's files allow more.",
        encoder_options.most_patches, encoder_options.most_patches / merged);
  }
  const uint32_t most_tokens = images::most_tokens(rules);
  encoder_options.most_patches = std::min(encoder_options.most_patches, most_tokens * merged);
  UploadProgress on_upload;
  if (progress) on_upload = [&](uint64_t done, uint64_t total) { return progress("weights", done, total); };
  auto loading = ImageEncoder::load(device_, checkpoint, std::move(*tower), std::move(rules),
                                    std::move(encoder_options), on_upload);
  DP_CO_TRY(std::unique_ptr<ImageEncoder> encoder, co_await std::move(loading));
  if (encoder->tower().tower.sees_itself) {
    // A tile is never split over two steps, and its keys stay there.
    options_.chunk = std::min(std::max(options_.chunk, encoder->most_tile_tokens()), options_.ctx_len);
    options_.rings = false;
  }
  const uint64_t row_bytes = encoder->row_size() * sizeof(float);
  const uint64_t rows = std::max<uint64_t>(kKeptBytes / row_bytes, options_.chunk + 2ull * most_tokens);
  images_ = std::make_unique<ImageStore>(device_, std::move(encoder), static_cast<uint32_t>(rows));
  DP_CO_CHECK(co_await images_->make_buffer());
  options_.images = true;
  co_return Result<void>();
}

Task<Result<void>> PlanRunner::make_image_buffers(gpu::PlanBuilder& builder) {
  views_.images = builder.external(images_->buffer());
  DP_CO_TRY(image_places_, co_await buffer(builder, "image_places", step_rows() * 4ull, &views_.image_places));
  const uint64_t steps_bytes = config_.rope.rotary_dim / 2 * 8ull;
  DP_CO_TRY(image_axes_,
            co_await buffer(builder, "image_axes", steps_bytes + step_rows() * kernels::kAxesRowBytes,
                            &views_.image_axes));
  DP_CO_TRY(const formats::RopeFrequencies frequencies,
            formats::rope_frequencies(config_.rope, options_.ctx_len, config_.ctx_len, {}));
  const std::vector<uint32_t> steps = kernels::make_rope_table(frequencies.inv_freq);
  DP_CO_CHECK(device_.write(*image_axes_, 0, bytes_of(steps)));
  if (!images_->encoder().tower().tower.sees_itself) co_return Result<void>();
  const uint64_t spans_bytes = step_rows() * 8ull;
  DP_CO_TRY(image_spans_, co_await buffer(builder, "image_spans", spans_bytes, &views_.image_spans));
  DP_CO_TRY(image_sliding_spans_,
            co_await buffer(builder, "image_sliding_spans", spans_bytes, &views_.image_sliding_spans));
  co_return Result<void>();
}

Result<void> PlanRunner::make_image_graph() {
  if (!images_) return {};
  DP_TRY(image_graph_, families::build_image_graph(config_, images_->encoder().tower()));
  image_bound_ = with_image_nodes(bound_, image_graph_);
  return {};
}

void PlanRunner::set_image_io(const PlanRow& row, lowering::StepIo& io) const {
  if (!images_) return;
  const bool by_axes = image_inputs().counts_by_axes;
  if (by_axes) io.rope.places = row.images ? kernels::RopePlaces::kAxes : kernels::RopePlaces::kShifted;
  if (!row.images) return;
  const auto& sections = config_.rope.sections;
  io.rope.axes = {.time = sections[0],
                  .height = sections[1],
                  .width = sections[2],
                  .interleaved = config_.rope.interleaved_sections};
  io.rope.table = views_.image_axes;
  io.spans = {.all = views_.image_spans, .sliding = views_.image_sliding_spans};
  io.images = {.images = views_.images,
               .places = views_.image_places,
               .n_images = images_->capacity(),
               .stride = images_->encoder().row_size()};
}

ImageInputs PlanRunner::image_inputs() const {
  if (!images_) return {};
  return {.store = images_.get(),
          .places = image_places_,
          .axes = image_axes_,
          .axes_offset = config_.rope.rotary_dim / 2 * 8ull,
          .counts_by_axes = config_.rope.sections[0] + config_.rope.sections[1] + config_.rope.sections[2] != 0,
          .spans = image_spans_,
          .sliding_spans = image_sliding_spans_,
          .window = config_.sliding_window};
}

}  // namespace doppler::model
