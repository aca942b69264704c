// DeviceModel::load: memory plan, buffers, weights, recording of all plans, and their one build.
#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "base/trace.h"
#include "families/families.h"
#include "kernels/attention/attention.h"
#include "kernels/catalogue.h"
#include "kernels/linear/linear.h"
#include "kernels/moe/group_routes.h"
#include "kernels/step/advance.h"
#include "kernels/step/next.h"
#include "lowering/lowering.h"
#include "model/bind_weights.h"
#include "model/device_model.h"
#include "model/load_estimate.h"
#include "model/plan_row.h"

namespace doppler::model {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The logits of a whole chunk come back to the host; this keeps them small.
constexpr uint64_t kAllLogitsBytes = 32ull << 20;

}  // namespace

Task<Result<std::unique_ptr<DeviceModel>>> DeviceModel::load(gpu::Device& device,
                                                             const formats::Checkpoint& checkpoint,
                                                             RunnerOptions options, LoadProgress progress) {
  const auto load_start = Clock::now();
  DP_CO_CHECK(kernels::check_forced_names(device.caps(), options.policy));
  DP_CO_TRY(formats::ModelConfig config, formats::read_config(checkpoint));
  DP_CO_CHECK(families::check_has_forward_pass(config));
  if (options.pooling != formats::Pooling::kNone) {
    config.pooling.kind = options.pooling;
  } else {
    tell_of_guessed_pooling(checkpoint, config);
  }
  fill_defaults(options, config, device.caps());
  tell_of_layers_left_out(checkpoint, config);
  if (options.tickets == 0) options.tickets = kTickets;
  if (options.tickets < 2 || options.tickets > kMaxTickets) {
    co_return fail(ErrorKind::kInvalidInput, "A ring of %u readbacks was asked for; allowed is 2 to %u.",
                   options.tickets, kMaxTickets);
  }
  config.part = options.part;
  const bool is_part = !formats::is_whole(config);
  // Its one dispatch has all layers. Tuning may have allowed it.
  if (is_part) options.policy.lanes &= ~(1u << static_cast<uint32_t>(kernels::Lane::kPersistent));
  const RunnerOptions asked = options;
  const bool is_told =
      options.drafting == Drafting::kAuto && config.next_layers != 0 && formats::ends_model(config);
  DP_CO_TRY(std::string no_drafts, choose_drafting(options, config));
  if (options.layers != 0 && options.layers < config.n_layers) {
    const uint32_t cut = config.n_layers - options.layers;
    config.shared_kv_layers -= std::min(cut, config.shared_kv_layers);
    config.n_layers = options.layers;
  }
  if (options.all_logits && !config.bidirectional) {
    const uint64_t rows = kAllLogitsBytes / (formats::output_dim(config) * 4ull);
    options.chunk = static_cast<uint32_t>(std::clamp<uint64_t>(rows, 1, options.chunk));
  }
  const formats::LayoutPolicy layout = weight_layout_policy(device.caps(), options.policy);
  DP_CO_CHECK(check_cache_format(config, options.cache_format));
  DP_CO_TRY(options.layer_table_on_host, choose_layer_table(options, config, checkpoint, device.caps()));
  if (!is_part) {
    DP_CO_CHECK(choose_expert_slots(options, config, checkpoint, device.caps()));
    DP_CO_CHECK(fill_pool(options, config, checkpoint, device.caps()));
  }
  const uint32_t positions = options.max_sequences != 0 ? options.pool_tokens : options.ctx_len;
  const CacheLengths lengths{
      .ctx_len = positions,
      .ring_len = options.max_sequences != 0 ? options.window_tokens : ring_len_of(options, config)};
  MemoryEstimate estimate = estimate_of(options, config, checkpoint, device.caps(), lengths);
  const uint32_t expert_slots = options.expert_slots;
  if (expert_slots != 0 && config.next_layers != 0) {  // the device has no room for all experts
    if (options.drafting == Drafting::kNext) {
      co_return fail(ErrorKind::kUnsupported,
                     "The model %s cannot draft tokens (--draft next): experts are paged.",
                     config.name.c_str());
    }
    no_drafts = "experts are paged";
    config.next_layers = 0;
  }
  estimate.weight_bytes += estimate_adapters(options.adapters, config);
  DP_CO_CHECK(check_memory(estimate, device.caps(), positions));

  std::unique_ptr<DeviceModel> runner(new DeviceModel(device, std::move(config), std::move(options)));
  if (std::exchange(runner->options_.images, false)) {
    auto loading = runner->load_images(checkpoint, progress);
    DP_CO_CHECK_WHILE(co_await std::move(loading), "loading the vision tower of %s",
                      checkpoint.name().c_str());
  }
  if (runner->options_.pan_and_scan) DP_CO_CHECK(runner->check_pan_and_scan(checkpoint.name()));
  runner->drafts_ = runner->config_.next_layers != 0;
  if (runner->drafts_ && runner->options_.images) {  // plans of pictures have no such layer
    no_drafts = "pictures are read";
    runner->drafts_ = false;
    runner->config_.next_layers = 0;
  }
  if (is_told && !no_drafts.empty()) runner->refuse_drafts(std::move(no_drafts));
  gpu::PlanBuilder builder(device.caps());
  runner->make_tables();
  DP_CO_CHECK(co_await runner->make_buffers(builder));

  const TraceSpan span("load");
  LoadTimes& times = runner->load_times_;
  const gpu::Counters before = device.counters();
  UploadProgress on_upload;
  if (progress) on_upload = [&](uint64_t done, uint64_t total) { return progress("weights", done, total); };
  WeightLoader loader(device, builder, checkpoint, layout, on_upload);
  DP_CO_TRY(runner->graph_, families::build_graph(runner->config_, runner->drafts_));
  if (runner->drafts_ || !lowering::Lowering::has_step_input(runner->graph_)) {
    DP_CO_CHECK(runner->options_.rules.set("step_tail=off"));
  }
  if (runner->exchange_) {
    const gpu::Caps& caps = device.caps();
    DP_CO_CHECK(co_await loader.place_together(together_bytes(runner->config_, checkpoint, layout),
                                               std::min(caps.max_binding_bytes, caps.max_buffer_bytes)));
  }
  auto bound =
      co_await bind_weights(loader, runner->graph_, runner->config_,
                            {.ctx_len = runner->options_.ctx_len,
                             .rules = runner->options_.rules,
                             .expert_slots = expert_slots,
                             .host_rows = runner->options_.layer_table_on_host ? runner->step_rows() : 0});
  Result<void> recorded;
  if (bound) {
    runner->bound_ = std::move(*bound);
    auto making = runner->make_adapters(builder, checkpoint);
    recorded = co_await std::move(making);
    if (recorded && runner->images_) recorded = runner->make_image_graph();
    // Later plans are made by copies of the builder, which know the buffers that were named before.
    runner->choice_plans_.begin(device, builder, runner->choice_shape());
    runner->draft_plans_.begin(device, builder, runner->draft_shape(), runner->choice_plans_);
    if (recorded) recorded = runner->record_plans(builder);
  } else {
    recorded = forward(bound.error());
  }
  // The layer's weights are not all there, or its plans cannot be had: the model itself runs.
  if (!recorded && runner->drafts_ && asked.drafting == Drafting::kAuto) {
    RunnerOptions again = asked;
    again.drafting = Drafting::kOff;
    auto loading = load(device, checkpoint, std::move(again), std::move(progress));
    DP_CO_TRY(std::unique_ptr<DeviceModel> without, co_await std::move(loading));
    without->refuse_drafts(recorded.error().message());
    co_return without;
  }
  DP_CO_CHECK_WHILE(bound, "loading %s", checkpoint.name().c_str());
  DP_CO_CHECK(recorded);
  DP_CO_CHECK_WHILE(co_await loader.stream().prepare(), "loading %s", checkpoint.name().c_str());

  // The pipelines compile while the weights stream; whoever is later is the one whose progress is told last.
  const auto start = Clock::now();
  bool streaming = true, cancelled = false;
  gpu::BuildProgress on_build;
  if (progress) {
    on_build = [&](uint32_t done, uint32_t total) {
      if (!streaming && !progress("kernels", done, total)) cancelled = true;
    };
  }
  auto building = builder.build(device, on_build);
  building.start();
  const Result<void> streamed = co_await loader.stream().run();
  streaming = false;
  times.weights_seconds = seconds_since(start);
  auto built = co_await std::move(building);  // also after a failure: it uses this frame
  DP_CO_CHECK_WHILE(streamed, "loading %s", checkpoint.name().c_str());
  DP_CO_TRY(runner->built_, std::move(built));
  if (cancelled) co_return fail(ErrorKind::kCancelled, "The caller stopped the compiling of the kernels.");
  runner->weights_ = loader.take_buffers();
  runner->host_table_ = loader.take_host_table();
  if (expert_slots != 0) {
    auto paging = runner->make_pager(checkpoint, loader.take_paged());
    DP_CO_CHECK(co_await std::move(paging));
  }
  if (runner->wants_persistent()) DP_CO_CHECK(co_await runner->confirm_persistent());
  auto loading_adapters = runner->load_adapters();
  DP_CO_CHECK(co_await std::move(loading_adapters));
  if (runner->options_.all_logits) {
    runner->make_all_rows();
  } else {
    auto making = runner->has_many() ? runner->make_many() : runner->make_one();
    DP_CO_CHECK(co_await std::move(making));
  }
  DP_CO_CHECK(co_await device.idle());  // weights arrived; errors of the whole load surface here
  const gpu::Counters& after = device.counters();
  times.seconds = seconds_since(load_start);
  times.bytes = loader.stream().streamed();
  times.copy_seconds = static_cast<double>(after.upload_copy_ns - before.upload_copy_ns) * 1e-9;
  times.pipelines_seconds = static_cast<double>(after.compile_ns - before.compile_ns) * 1e-9;
  times.pipelines = after.pipelines_created - before.pipelines_created;
  times.blobs_found = after.blobs_found - before.blobs_found;
  times.blobs_stored = after.blobs_stored - before.blobs_stored;
  runner->memory_.weight_bytes += loader.weight_bytes();
  runner->memory_.scratch_bytes += runner->built_.scratch_bytes;
  runner->warn_unused_kernels();
  runner->warn_no_lookup();
  co_return runner;
}

ChoiceShape DeviceModel::choice_shape() const {
  ChoiceShape shape{.sequences = 1,
                    .vocab_size = config_.vocab_size,
                    .tickets = options_.tickets,
                    .ring_entries = kernels::kTokenRing,
                    .ticket_entries = kMaxBatch};
  if (!has_many()) return shape;
  shape.sequences = tables_.sequences;
  shape.ring_entries = uint64_t{kernels::kStepRing} * tables_.sequences;
  shape.ticket_entries = uint64_t{kMostSteps} * tables_.sequences;
  return shape;
}

// A forced variant of an operation that this model does not have changes nothing; that must not go unseen.
void DeviceModel::warn_unused_kernels() const {
  for (const auto& [operation, variant] : options_.policy.forced) {
    if (std::ranges::find(choices_, operation, &kernels::Choice::operation) == choices_.end()) {
      log(LogLevel::kWarning, "Variant %s was asked for, but the plans of this model have no operation %s.",
          variant.c_str(), operation.c_str());
    }
  }
}

// Makes the room for adapters. The plans read it, so it comes before they are recorded.
Task<Result<void>> DeviceModel::make_adapters(gpu::PlanBuilder& builder,
                                              const formats::Checkpoint& checkpoint) {
  const AdapterRoom& room = options_.adapters;
  auto making = adapters_.make(device_, builder, graph_, checkpoint, config_, room, tables_.sequences);
  DP_CO_TRY(bound_.adapters, co_await std::move(making));
  memory_.weight_bytes += adapters_.arena().bytes();
  // With step_tail the step before makes a token's embedding, and it does so without adapters.
  if (adapters_.arena().adapts_embedding()) DP_CO_CHECK(options_.rules.set("step_tail=off"));
  co_return Result<void>();
}

Task<Result<void>> DeviceModel::load_adapters() {
  auto loading = adapters_.load_first();
  DP_CO_CHECK(co_await std::move(loading));
  if (!options_.all_logits) co_return Result<void>();
  co_return adapters_.begin(0, adapters_.first(), 0);
}

Task<Result<gpu::Buffer*>> DeviceModel::buffer(gpu::PlanBuilder& builder, const char* name, uint64_t bytes,
                                               kernels::TensorView* view) {
  gpu::BufferDesc desc{.name = name, .bytes = (bytes + 255) / 256 * 256, .use = gpu::BufferUse::kStorage};
  DP_CO_TRY(gpu::Buffer made, co_await device_.create_buffer(std::move(desc)));
  buffers_.push_back(std::make_unique<gpu::Buffer>(std::move(made)));
  *view = builder.external(*buffers_.back());
  co_return buffers_.back().get();
}

Task<Result<void>> DeviceModel::make_buffers(gpu::PlanBuilder& builder) {
  const uint64_t vocab = config_.vocab_size;
  const uint64_t sequences = std::max(1u, tables_.sequences);
  const uint64_t rows = step_rows();
  const uint64_t logits_rows = options_.all_logits || !ends_model() ? rows : sequences;
  DP_CO_TRY(state_,
            co_await buffer(builder, "step_state", has_many() ? tables_.bytes() : sizeof(kernels::StepState),
                            &views_.state));
  DP_CO_TRY(tokens_, co_await buffer(builder, "tokens", (rows + (drafts_ ? 1 : 0)) * 4, &views_.tokens));
  DP_CO_TRY(logits_, co_await buffer(builder, "logits", logits_rows * result_dim() * 4, &views_.logits));
  if (!formats::is_whole(config_)) DP_CO_CHECK(co_await make_stream_buffers(builder));
  if (config_.n_token_types != 0) {
    DP_CO_TRY(token_types_, co_await buffer(builder, "token_types", rows * 4, &views_.token_types));
  }
  if (options_.hidden) {
    const uint64_t bytes = (config_.n_layers + 1) * rows * config_.hidden_dim * 4;
    DP_CO_TRY(hidden_, co_await buffer(builder, "hidden", bytes, &views_.hidden));
  }
  [[maybe_unused]] gpu::Buffer* token = nullptr;
  DP_CO_TRY(params_, co_await buffer(builder, "sample_params", sequences * kernels::kSampleParamsStride,
                                     &views_.params));
  DP_CO_TRY(bias_,
            co_await buffer(builder, "logit_bias", sequences * kernels::kMaxLogitBias * 8, &views_.bias));
  DP_CO_TRY(counts_, co_await buffer(builder, "token_counts", sequences * vocab * 4, &views_.counts));
  DP_CO_TRY(recent_,
            co_await buffer(builder, "recent_tokens", sequences * kernels::kPenaltyRing * 4, &views_.recent));
  DP_CO_TRY(token, co_await buffer(builder, "next_token", sequences * 4, &views_.token));
  const uint64_t ring = has_many() ? uint64_t{kernels::kStepRing} * sequences : kernels::kTokenRing;
  DP_CO_TRY(ring_, co_await buffer(builder, "token_ring", ring * 4, &views_.ring));
  if (drafts_) DP_CO_CHECK(co_await make_draft_buffers(builder));
  if (images_) DP_CO_CHECK(co_await make_image_buffers(builder));
  if (options_.expert_slots != 0) {
    const kernels::Routes routes{
        .view = {}, .n_experts = options_.expert_slots, .n_used = config_.moe.n_used};
    const uint64_t bytes = routes.bytes(step_rows());
    DP_CO_TRY(routes_.routes, co_await buffer(builder, "routes", bytes, &paged_.routes));
    DP_CO_TRY(routes_.slot_routes, co_await buffer(builder, "slot_routes", bytes, &paged_.slot_routes));
    const uint64_t group_bytes = kernels::GroupSizes(routes, step_rows()).bytes();
    DP_CO_TRY(routes_.slot_groups, co_await buffer(builder, "slot_groups", group_bytes, &paged_.slot_groups));
  }
  if (!has_many()) {
    const uint32_t hidden_dim = config_.hidden_dim;
    [[maybe_unused]] gpu::Buffer *row = nullptr, *normed = nullptr;
    DP_CO_TRY(row, co_await buffer(builder, "next_row", hidden_dim * 4ull, &views_.row));
    DP_CO_TRY(normed, co_await buffer(builder, "next_normed_row", kernels::NormedRow::bytes(hidden_dim),
                                      &views_.normed_row));
  }
  for (const auto& made : buffers_) memory_.scratch_bytes += made->bytes();
  const bool is_joined =
      options_.policy.allows(kernels::Lane::kPersistent) && !has_many() && formats::has_equal_caches(config_);
  CacheLayout layout{.lengths = {.ctx_len = options_.ctx_len, .ring_len = ring_len_of(options_, config_)},
                     .format = options_.cache_format,
                     .is_joined = is_joined};
  if (has_many()) {
    layout.block_len = tables_.block_len;
    layout.blocks = options_.pool_tokens / tables_.block_len;
    layout.window_blocks = options_.window_tokens / tables_.block_len;
  }
  DP_CO_CHECK(co_await cache_.make(device_, builder, config_, layout));
  memory_.cache_bytes = cache_.bytes();
  const uint32_t of_one = options_.all_logits ? 0 : kCheckpoints;
  DP_CO_CHECK(co_await states_.make(device_, builder, config_, static_cast<uint32_t>(sequences),
                                    has_many() ? options_.checkpoints : of_one));
  memory_.state_bytes += states_.bytes();
  tell_of_persistent();
  if (wants_persistent()) DP_CO_CHECK(co_await make_exchange(builder));
  co_return Result<void>();
}

}  // namespace doppler::model
