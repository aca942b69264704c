#include "model/image_encoder.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/trace.h"
#include "kernels/attention/attention.h"
#include "kernels/common/step_state.h"
#include "kernels/image_rows/image_rows.h"
#include "lowering/lowering.h"
#include "model/bind_weights.h"
#include "model/load_estimate.h"
#include "model/weight_loader.h"

namespace doppler::model {
namespace {

constexpr uint64_t kImageEncoderWord = sizeof(uint32_t);

uint32_t pairs_of(const formats::ModelConfig& tower) { return tower.rope.rotary_dim / 2; }
uint32_t deep_count(const formats::ModelConfig& tower) {
  return static_cast<uint32_t>(tower.tower.deepstack.size());
}

// The bytes of a patch's 8-bit pixels.
uint64_t patch_bytes(const images::ImageRules& rules) {
  return uint64_t{rules.patch} * rules.patch * images::kChannels;
}

// Runs of `length` values in the order of their numbers.
template <class T>
std::vector<T> in_order(const std::vector<T>& values, std::span<const uint32_t> numbers, size_t length) {
  std::vector<T> out;
  out.reserve(values.size());
  for (const uint32_t number : numbers) {
    const auto first = values.begin() + static_cast<ptrdiff_t>(number * length);
    out.insert(out.end(), first, first + static_cast<ptrdiff_t>(length));
  }
  return out;
}

}  // namespace

uint32_t ImageEncoder::row_size() const { return tower_.tower.image_dim * (1 + deep_count(tower_)); }

Task<Result<gpu::Buffer*>> ImageEncoder::buffer(gpu::PlanBuilder& builder, const char* name, uint64_t bytes,
                                                kernels::TensorView* view) {
  gpu::BufferDesc desc{.name = name, .bytes = (bytes + 255) / 256 * 256, .use = gpu::BufferUse::kStorage};
  DP_CO_TRY(gpu::Buffer made, co_await device_.create_buffer(std::move(desc)));
  buffers_.push_back(std::make_unique<gpu::Buffer>(std::move(made)));
  scratch_bytes_ += buffers_.back()->bytes();
  *view = builder.external(*buffers_.back());
  co_return buffers_.back().get();
}

// The layers share one cache, since nothing outlives a picture.
Task<Result<void>> ImageEncoder::make_buffers(gpu::PlanBuilder& builder, kernels::CacheFormat format) {
  const uint64_t rows = most_patches_, hidden_bytes = rows * tower_.hidden_dim * sizeof(float);
  kernels::CacheView& cache = views_.cache;
  cache = {.format = format,
           .n_kv_heads = tower_.n_kv_heads,
           .ctx_len = most_patches_,
           .head_dim = tower_.head_dim};
  [[maybe_unused]] gpu::Buffer* unnamed = nullptr;
  DP_CO_TRY(unnamed, co_await buffer(builder, "tower_k", cache.bytes(), &cache.k));
  DP_CO_TRY(unnamed, co_await buffer(builder, "tower_v", cache.bytes(), &cache.v));
  DP_CO_TRY(patches_state_,
            co_await buffer(builder, "patches_state", sizeof(kernels::StepState), &views_.patches_state));
  DP_CO_TRY(tokens_state_,
            co_await buffer(builder, "tokens_state", sizeof(kernels::StepState), &views_.tokens_state));
  DP_CO_TRY(pixels_, co_await buffer(builder, "pixels", rows * patch_bytes(rules_), &views_.pixels));
  DP_CO_TRY(origins_,
            co_await buffer(builder, "patch_origins", rows * 2 * kImageEncoderWord, &views_.origins));
  DP_CO_TRY(const gpu::Buffer* const levels,
            co_await buffer(builder, "levels", sizeof(images::Levels), &views_.levels));
  DP_CO_TRY(unnamed, co_await buffer(builder, "patches", rows * tower_.tower.patch_values * sizeof(float),
                                     &views_.patches));
  DP_CO_TRY(taps_, co_await buffer(builder, "position_taps",
                                   rows * std::max(1u, families::taps_each(tower_)) * sizeof(families::Tap),
                                   &views_.taps));
  DP_CO_TRY(table_, co_await buffer(builder, "patch_axes",
                                    pairs_of(tower_) * 2 * kImageEncoderWord + rows * kernels::kAxesRowBytes,
                                    &views_.table));
  const uint64_t windows = tower_.tower.window == 0 ? 1 : rows;
  DP_CO_TRY(windows_,
            co_await buffer(builder, "patch_windows", windows * kernels::kSpanBytes, &views_.windows));
  DP_CO_TRY(unnamed, co_await buffer(builder, "patch_states", hidden_bytes, &views_.states));
  DP_CO_TRY(unnamed, co_await buffer(builder, "deep_states",
                                     std::max<uint64_t>(1, deep_count(tower_)) * hidden_bytes, &views_.deep));
  DP_CO_TRY(rows_, co_await buffer(builder, "image_rows",
                                   uint64_t{most_tile_tokens()} * row_size() * sizeof(float), &views_.rows));
  const images::Levels values = images::levels_of(rules_, images::ValuesOf::kTower);
  DP_CO_CHECK(device_.write(*levels, 0, bytes_of(values)));
  const std::vector<uint32_t> steps = kernels::make_rope_table(families::tower_frequencies(tower_));
  if (!steps.empty()) DP_CO_CHECK(device_.write(*table_, 0, bytes_of(steps)));
  co_return Result<void>();
}

Result<void> ImageEncoder::record(gpu::PlanBuilder& builder, const EncoderOptions& options) {
  const auto record_plan = [&](const char* name, uint32_t rows, const graph::Graph& graph,
                               const lowering::BoundWeights& bound, kernels::TensorView state,
                               const lowering::StepIo& io, const auto& before) -> Result<void> {
    builder.begin(name, rows);
    kernels::Context ctx{.plan = builder,
                         .policy = options.policy,
                         .choices = choices_,
                         .state = state,
                         .max_rows = rows,
                         .op_label = {}};
    reports_.push_back({.plan = name});
    DP_CHECK(before(ctx));
    lowering::Lowering lowering(graph, bound, options.rules, ctx, io, reports_.back());
    DP_CHECK_WHILE(lowering.run(), "recording the plan %s", name);
    builder.end();
    return {};
  };
  const uint32_t axis = tower_.head_dim / 4, tokens = most_tile_tokens();
  lowering::StepIo patches{.cache = std::vector(tower_.n_layers, views_.cache),
                           .logits_rows = lowering::LogitsRows::kAll,
                           .logits = views_.states};
  patches.inputs = {views_.patches};
  patches.taps = {.taps = views_.taps, .taps_each = families::taps_each(tower_)};
  patches.rope = {.places = kernels::RopePlaces::kAxes,
                  .axes = {.time = 0, .height = axis, .width = axis},
                  .table = views_.table};
  if (deep_count(tower_) != 0) patches.hidden = views_.deep;
  if (tower_.tower.window != 0) patches.spans.windows = views_.windows;
  const auto record_values = [&](kernels::Context& ctx) {
    return kernels::record(
        ctx, kernels::PatchValues{
                 .pixels = views_.pixels,
                 .patches = views_.origins,
                 .levels = views_.levels,
                 .x = views_.patches,
                 .words = static_cast<uint32_t>(most_patches_ * patch_bytes(rules_) / kImageEncoderWord),
                 .edge = rules_.patch,
                 .copies = rules_.copies,
                 .channels_last = rules_.family->values == images::PatchValues::kChannelsLast});
  };
  DP_CHECK(record_plan("patches", most_patches_, graphs_.patches, bound_patches_, views_.patches_state,
                       patches, record_values));

  lowering::StepIo merged{.logits_rows = lowering::LogitsRows::kAll, .logits = views_.rows};
  const uint64_t states_bytes = uint64_t{most_patches_} * tower_.hidden_dim * sizeof(float);
  merged.inputs = {views_.states.sub(0, states_bytes)};
  for (uint32_t i = 0; i < deep_count(tower_); ++i) {
    merged.inputs.push_back(views_.deep.sub(i * states_bytes, states_bytes));
  }
  return record_plan("tokens", tokens, graphs_.tokens, bound_tokens_, views_.tokens_state, merged,
                     [](const kernels::Context&) { return Result<void>(); });
}

Task<Result<std::unique_ptr<ImageEncoder>>> ImageEncoder::load(
    gpu::Device& device, const formats::Checkpoint& checkpoint, formats::ModelConfig tower,
    images::ImageRules rules, EncoderOptions options, UploadProgress progress) {
  if (rules.patch_values() != tower.tower.patch_values || rules.block != tower.tower.block) {
    co_return fail(
        ErrorKind::kInvalidInput,
        "preprocessor_config.json makes patches of %u values in blocks of %u; the tower takes %u in "
        "blocks of %u.",
        rules.patch_values(), rules.block, tower.tower.patch_values, tower.tower.block);
  }
  const TraceSpan span("load tower");
  std::unique_ptr<ImageEncoder> encoder(new ImageEncoder(device, std::move(tower), std::move(rules)));
  const uint32_t merged = formats::merged_patches(encoder->tower_);
  // Whole runs of so many rows begin where a binding may.
  constexpr uint32_t kRowsOfBinding = 64;
  const uint32_t whole = kRowsOfBinding * merged;
  const uint32_t most_rows = options.most_patches + (encoder->tower_.tower.has_class_row ? 1 : 0);
  encoder->most_patches_ = (std::max(most_rows, whole) + whole - 1) / whole * whole;
  DP_CO_TRY(encoder->graphs_, families::build_tower(encoder->tower_));
  gpu::PlanBuilder builder(device.caps());
  DP_CO_CHECK(co_await encoder->make_buffers(builder, options.cache_format));
  WeightLoader loader(device, builder, checkpoint, weight_layout_policy(device.caps(), options.policy),
                      std::move(progress));
  const BindOptions bind{.ctx_len = encoder->most_patches_, .rules = options.rules};
  auto patches = bind_weights(loader, encoder->graphs_.patches, encoder->tower_, bind);
  DP_CO_TRY(encoder->bound_patches_, co_await std::move(patches));
  auto tokens = bind_weights(loader, encoder->graphs_.tokens, encoder->tower_, bind);
  DP_CO_TRY(encoder->bound_tokens_, co_await std::move(tokens));
  DP_CO_CHECK(encoder->record(builder, options));
  DP_CO_CHECK(co_await loader.stream().prepare());
  auto building = builder.build(device, {});
  building.start();
  const Result<void> streamed = co_await loader.stream().run();
  auto built = co_await std::move(building);  // also after a failure: it uses this frame
  DP_CO_CHECK(streamed);
  DP_CO_TRY(encoder->built_, std::move(built));
  encoder->weights_ = loader.take_buffers();
  encoder->weight_bytes_ = loader.weight_bytes();
  encoder->scratch_bytes_ += encoder->built_.scratch_bytes;
  co_return encoder;
}

// The tile's bytes, and its patches as the tower reads them: token by token, in its order.
Result<void> ImageEncoder::write_rows(const images::Picture& tile, const families::TokenOrder& order) {
  std::vector<PatchPlace> places = images::patch_places(rules_, tile.size);
  const auto rows = static_cast<uint32_t>(places.size());
  if (!order.tokens.empty()) {
    const uint32_t merged = formats::merged_patches(tower_);
    places = in_order<PatchPlace>(places, order.tokens, merged);
    std::vector<uint32_t> windows;
    for (const auto& [first, last] : order.windows) {
      for (uint32_t i = 0; i < merged; ++i)
        windows.insert(windows.end(), {first * merged, last * merged + merged - 1});
    }
    DP_CHECK(device_.write(*windows_, 0, bytes_of(windows)));
  }
  const auto row_bytes = static_cast<uint32_t>(tile.row_bytes());
  std::vector<uint32_t> origins;
  for (const PatchPlace& place : places) {
    origins.push_back(place.row * rules_.patch * row_bytes + place.column * rules_.patch * images::kChannels);
    origins.push_back(row_bytes);
  }
  if (tower_.tower.has_class_row) origins.insert(origins.end(), {kernels::kNoPatch, 0});  // it has no pixels
  DP_CHECK(device_.write(*origins_, 0, bytes_of(origins)));
  std::vector<uint8_t> pixels = tile.rgb;
  pixels.resize((pixels.size() + kImageEncoderWord - 1) / kImageEncoderWord *
                kImageEncoderWord);  // what is written are whole words
  DP_CHECK(device_.write(*pixels_, 0, pixels));
  const std::vector<families::Tap> taps = families::position_taps(
      tower_, places, tile.size.height / rules_.patch, tile.size.width / rules_.patch);
  if (!taps.empty()) DP_CHECK(device_.write(*taps_, 0, bytes_of(taps)));
  if (tower_.rope.rotary_dim == 0) return {};
  std::vector<uint32_t> axes;  // a row's position is its number
  for (uint32_t row = 0; row < rows; ++row) {
    axes.insert(axes.end(), {0u - row, places[row].row - row, places[row].column - row, 0u});
  }
  return device_.write(*table_, pairs_of(tower_) * 2 * kImageEncoderWord, bytes_of(axes));
}

families::TokenOrder ImageEncoder::order_of(const images::Picture& tile) const {
  const uint32_t edge = rules_.patch * rules_.block;
  return families::token_order(tower_, tile.size.height / edge, tile.size.width / edge);
}

Result<ImageEncoder::TileWork> ImageEncoder::prepare(const images::Picture& tile) {
  const uint32_t tokens = rules_.tokens(tile.size), rows = tokens * formats::merged_patches(tower_);
  const uint32_t all_rows = rows + (tower_.tower.has_class_row ? 1 : 0);
  if (all_rows > most_patches_) {
    return fail(ErrorKind::kUnsupported,
                "A picture of %u x %u pixels has %u patches; this model was loaded for up to %u.",
                tile.size.width, tile.size.height, rows, most_patches_);
  }
  DP_CHECK(write_rows(tile, order_of(tile)));
  const kernels::StepState patches_state{.rows = all_rows, .ctx_len = most_patches_};
  const kernels::StepState tokens_state{.rows = tokens, .ctx_len = most_tile_tokens()};
  DP_CHECK(device_.write(*patches_state_, 0, bytes_of(patches_state)));
  DP_CHECK(device_.write(*tokens_state_, 0, bytes_of(tokens_state)));
  return TileWork{{{.plan = &built_.plans[0], .rows = all_rows}, {.plan = &built_.plans[1], .rows = tokens}}};
}

Result<void> ImageEncoder::encode_tile(const images::Picture& tile, const gpu::Buffer& to, uint32_t first) {
  const uint32_t tokens = rules_.tokens(tile.size);
  const families::TokenOrder order = order_of(tile);
  DP_TRY(const TileWork work, prepare(tile));
  gpu::Plan copy{.name = "image.copy", .words = {}, .entries = {}};
  const auto copy_rows = [&](uint32_t from, uint32_t at, uint32_t count) {
    const uint32_t size = row_size();
    copy.words.insert(copy.words.end(), {gpu::kCopy, rows_->id(), from * size, to.id(), (first + at) * size,
                                         count * size, 0, 0});
  };
  if (order.tokens.empty()) copy_rows(0, 0, tokens);
  for (uint32_t from = 0; from < order.tokens.size();) {  // back into the picture's order, run by run
    uint32_t count = 1;
    while (from + count < order.tokens.size() && order.tokens[from + count] == order.tokens[from] + count)
      ++count;
    copy_rows(from, order.tokens[from], count);
    from += count;
  }
  const gpu::Work works[] = {work[0], work[1], {.plan = &copy}};
  return device_.submit(works);
}

Result<void> ImageEncoder::encode(const images::PreparedImage& image, const gpu::Buffer& to, uint32_t first) {
  const TraceSpan span("encode image");
  for (const images::Picture& tile : image.tiles) {
    DP_CHECK(encode_tile(tile, to, first));
    first += rules_.tokens(tile.size);
  }
  return {};
}

}  // namespace doppler::model
