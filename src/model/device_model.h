// A loaded model on a device: weights, cache, step state and the plans that replay its steps. It owns them; who
// replays the plans are the runners that it makes: one_sequence.h, sequence_plans.h, all_rows.h. Everything is
// created by load(), but for plans that few generations need (choice_plans.h). Read next: families/llama.cpp and
// lowering/lowering.h (what is recorded), kernels/step/step.h (how the state advances).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/architectures/config.h"
#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "graph/graph.h"
#include "kernels/common/step_state.h"
#include "kernels/context.h"
#include "lowering/bound_weights.h"
#include "lowering/rule.h"
#include "lowering/step_io.h"
#include "model/adapter_set.h"
#include "model/all_rows.h"
#include "model/choice_plans.h"
#include "model/draft_plans.h"
#include "model/expert_pager.h"
#include "model/host_table.h"
#include "model/image_inputs.h"
#include "model/kv_cache.h"
#include "model/memory_estimate.h"
#include "model/one_sequence.h"
#include "model/plan_row.h"
#include "model/recurrent_states.h"
#include "model/sequence_plans.h"
#include "model/weight_stream.h"

namespace doppler::model {

struct RunnerOptions {
  kernels::Policy policy;
  uint32_t ctx_len = 0;  // 0: what the model was trained for, at most kDefaultCtxLen
  uint32_t chunk = 0;    // 0: kDefaultChunk
  kernels::CacheFormat cache_format = kernels::CacheFormat::kF16;
  bool all_logits = false;  // plans for logits() instead of generation
  bool hidden = false;      // ... with the residual stream too
  uint32_t tickets = 0;     // that may be outstanding, 2 to kMaxTickets; 0: kTickets
  uint32_t layers = 0;      // only the first so many, to measure with less to load; 0: all
  bool rings = true;        // layers with a window keep no more than that asks for, where plans have rings
  // Slots for sequences, 1 to kMaxSequences: plans for sequences() instead of plans for one sequence. 0: plans for one.
  uint32_t max_sequences = 0;
  uint32_t block_len = 0;    // positions of a block of the cache; 0: kDefaultBlockLen
  uint32_t pool_tokens = 0;  // positions of all blocks; 0: ctx_len for each slot, or what fits the device
  uint32_t window_tokens =
      0;  // of the blocks of layers with a window; 0: no pool of their own. Set when loading
  uint32_t checkpoints = 0;  // of recurrent states, with max_sequences. Set when loading
  uint32_t block_reads = 1;  // blocks on their way to the host at a time: each takes memory there
  // The layers to load. If some are left out, they lie on other devices, and plan_split() has filled in these options,
  // also those that are set when loading.
  formats::LayerRange part = {};
  lowering::RuleSet rules = {};
  formats::Pooling pooling = formats::Pooling::kNone;  // none: as the model's files say
  uint64_t expert_bytes = 0;  // of GPU memory for experts, the others are paged; 0: what the device has
  uint32_t expert_slots = 0;  // experts of a layer on the device at a time; 0: all. Set when loading
  AdapterRoom adapters = {};
  bool layer_table_on_host = false;  // embeddings of each layer; false: only if the device has no room
  Drafting drafting = Drafting::kAuto;
  float simulated_drafts =
      -1;  // for measurements: kernels::DraftEnd::simulated; below 0: drafts are compared
  // With the model's vision tower, if its files have one that this build knows. As loaded: whether it is there.
  bool images = false;
  bool pan_and_scan = false;                       // pictures are cut in that way (images::with_pan_and_scan)
  const formats::Checkpoint* projector = nullptr;  // the tower's file beside a GGUF model; used while loading
};
// Error: the model gives embeddings or scores.
Result<void> check_writes_text(const formats::ModelConfig& config);
inline constexpr uint32_t kDefaultCtxLen = 4096;
inline constexpr uint32_t kDefaultChunk = 512;
inline constexpr uint32_t kLeastChunk = 64;  // that a device's limits lead to
inline constexpr uint32_t kDefaultBlockLen = 32;
inline constexpr uint32_t kMaxBatch = 256;  // decode steps of one ticket
inline constexpr uint32_t kTickets = 4;     // in flight, their tokens still to be read
inline constexpr uint32_t kMaxTickets = 64;

// stage: "weights" (bytes), "kernels" (pipelines). Returns false to stop.
using LoadProgress = std::function<bool(const char* stage, uint64_t done, uint64_t total)>;

// The costs of a load. Weights stream while pipelines compile, so the two overlap.
struct LoadTimes {
  double weights_seconds = 0;  // from the first byte to the last that was handed to the device
  double copy_seconds =
      0;  // the part in which the host read files (or their mapping) and filled staging memory
  double pipelines_seconds = 0;  // of compiling
  double seconds = 0;            // all of DeviceModel::load
  StreamedBytes bytes;           // of the files, by who laid them out
  uint64_t pipelines = 0;        // made
  uint64_t blobs_found = 0,
           blobs_stored = 0;  // of the provider's cache: a load that compiles nothing stores none
};

class DeviceModel {
 public:
  // `device` must outlive the model. So must the checkpoint, if experts are paged or a table is on the host.
  static Task<Result<std::unique_ptr<DeviceModel>>> load(gpu::Device& device,
                                                         const formats::Checkpoint& checkpoint,
                                                         RunnerOptions options, LoadProgress progress);

  uint32_t ctx_len() const { return options_.ctx_len; }
  uint32_t chunk() const { return options_.chunk; }

  // The steps of generations: of one slot, or with RunnerOptions::max_sequences of several; null: plans give all
  // logits.
  SequenceRunner* runner() { return runner_; }
  OneSequence* one() { return one_.get(); }           // null: of several, or all logits
  SequencePlans* sequences() { return many_.get(); }  // null: of one, or all logits

  // A part of a model, whose last part this is: steps go through `all` from now on, which calls this one's runner().
  void go_through(SequenceRunner* all) { runner_ = all; }
  const StreamIn& stream_in() const { return stream_in_; }     // of a part that does not begin the model
  const StreamOut& stream_out() const { return stream_out_; }  // of a part that does not end it

  // Only with RunnerOptions::all_logits: AllRows::run().
  using Rows = AllRows::Rows;
  Task<Result<Rows>> logits(uint32_t pos, std::span<const uint32_t> tokens,
                            std::span<const uint32_t> types = {}) {
    return all_rows_->run(pos, tokens, types);
  }

  // Where experts are paged; null: all lie on the device.
  const ExpertPager* pager() const { return pager_.get(); }
  // True if embeddings of each layer are on the host. Then a step's tokens are those of tickets that were collected.
  bool has_host_table() const { return host_table_ != nullptr; }

  // The pictures that prompts may hold; null: loaded without a tower.
  ImageStore* images() { return images_.get(); }
  bool knows_image_token(uint32_t token) const;
  // SequenceRunner::uncut_rows().
  uint32_t uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const {
    return image_inputs().uncut_rows(tokens, rows);
  }

  gpu::Device& device() { return device_; }
  const formats::ModelConfig& config() const { return config_; }
  const RunnerOptions& options() const { return options_; }
  KvCache& cache() { return cache_; }
  const AdapterSet& adapters() const { return adapters_; }
  const MemoryEstimate& memory() const { return memory_; }  // as loaded, not estimated
  const std::vector<kernels::Choice>& choices() const { return choices_; }
  const graph::Graph& graph() const { return graph_; }
  // The work of the rules of lowering, a report a plan.
  const std::vector<lowering::PlanReport>& reports() const { return reports_; }
  const std::vector<gpu::Plan>& plans() const { return built_.plans; }
  // Buffers, bind groups and pipelines of plans that generations asked for after the load.
  uint64_t objects_created_later() const {
    return choice_plans_.objects_created() + draft_plans_.objects_created();
  }
  const LoadTimes& load_times() const { return load_times_; }
  // True if the model's next-token layer was loaded; and the reason why it does not draft (of the model and the
  // options), "" if no one asked for it or it does.
  bool has_drafts() const { return drafts_; }
  const std::string& drafts_refused() const { return drafts_refused_; }
  // The plan of a decode step of one sequence up to `keys` tokens, and of `rows` of a prompt with sampling.
  const gpu::Plan& decode_plan(bool greedy, uint32_t keys) const;
  const gpu::Plan& prefill_plan(uint32_t rows) const;
  // The plans of steps that draft, if they were made.
  const DraftPlans& draft_plans() const { return draft_plans_; }

 private:
  DeviceModel(gpu::Device& device, formats::ModelConfig config, RunnerOptions options)
      : device_(device), config_(std::move(config)), options_(std::move(options)) {}

  void warn_unused_kernels() const;
  void warn_no_lookup() const;
  ChoiceShape choice_shape() const;
  Task<Result<void>> make_buffers(gpu::PlanBuilder& builder);
  Result<void> record_plans(gpu::PlanBuilder& builder);
  std::vector<PlanRow> plan_rows() const;
  Result<void> record_plan(gpu::PlanBuilder& builder, const PlanRow& row);
  kernels::Context context_of(gpu::PlanBuilder& builder, const PlanRow& row);
  lowering::StepIo io_of(const PlanRow& row) const;
  Result<void> record_end(kernels::Context& ctx, const lowering::StepIo& io, const lowering::Logits& logits,
                          const PlanRow& row, lowering::Lowering& lowering);
  Result<void> record_choice(kernels::Context ctx, const lowering::StepIo& io, const lowering::Logits& logits,
                             const PlanRow& row, const ChoiceViews& views);
  Result<void> record_first_choice(kernels::Context& ctx, const lowering::StepIo& io,
                                   const lowering::Logits& logits, const PlanRow& row);
  Result<void> record_choice_plan(gpu::PlanBuilder& builder, const PlanRow& row, const std::string& name,
                                  const ChoiceViews& views);
  Task<Result<void>> add_choices(SamplerParts parts);
  kernels::Sample sample_of(const lowering::Logits& logits, const PlanRow& row,
                            const ChoiceViews& views) const;
  Task<Result<void>> make_adapters(gpu::PlanBuilder& builder, const formats::Checkpoint& checkpoint);
  Task<Result<void>> load_adapters();
  Task<Result<gpu::Buffer*>> buffer(gpu::PlanBuilder& builder, const char* name, uint64_t bytes,
                                    kernels::TensorView* view);
  // Drafts: device_model_draft.cpp.
  void refuse_drafts(std::string reason);
  Task<Result<void>> make_draft_buffers(gpu::PlanBuilder& builder);
  DraftShape draft_shape() const;
  Task<Result<void>> add_drafts(DraftNeed need, uint32_t slots);
  Result<void> record_draft_begin(kernels::Context& ctx, const PlanRow& row);
  Result<void> record_draft_text(gpu::PlanBuilder& builder);
  Result<void> record_next(kernels::Context& ctx, lowering::Lowering& lowering, const PlanRow& row);
  Result<void> record_draft_end(kernels::Context& ctx, const lowering::StepIo& io,
                                const lowering::Logits& logits, const PlanRow& row,
                                lowering::Lowering& lowering);
  Result<void> record_kept_past(kernels::Context& ctx, const PlanRow& row);
  Result<void> record_many_draft_end(kernels::Context& ctx, const lowering::Logits& logits,
                                     const PlanRow& row);
  Result<void> record_draft_choices(kernels::Context& ctx, const lowering::Logits& logits,
                                    const PlanRow& row);
  // Many sequences: device_model_many.cpp.
  bool has_many() const { return tables_.sequences != 0; }
  uint32_t step_rows() const { return has_many() ? tables_.rows : options_.chunk; }  // at most
  uint32_t least_rows() const;
  void make_tables();
  std::vector<PlanRow> many_plan_rows() const;
  std::vector<PlanRow> plan_rows_of_part() const;
  Result<void> record_arrange(gpu::PlanBuilder& builder);
  kernels::Context context_of_slots(const kernels::Context& ctx, const PlanRow& row) const;
  Result<void> record_many_end(kernels::Context& ctx, const lowering::StepIo& io,
                               const lowering::Logits& logits, const PlanRow& row);
  Task<Result<void>> make_many();
  Task<Result<void>> make_one();
  void make_all_rows();
  // Pictures: device_model_images.cpp.
  Task<Result<void>> load_images(const formats::Checkpoint& checkpoint, const LoadProgress& progress);
  Result<void> check_pan_and_scan(const std::string& name) const;
  Task<Result<void>> make_image_buffers(gpu::PlanBuilder& builder);
  Result<void> make_image_graph();
  void set_image_io(const PlanRow& row, lowering::StepIo& io) const;
  ImageInputs image_inputs() const;
  // A part of a model: device_model_part.cpp.
  bool ends_model() const { return formats::ends_model(config_); }
  // Numbers of a row that plans give: logits, or the residual stream.
  uint32_t result_dim() const { return ends_model() ? formats::output_dim(config_) : config_.hidden_dim; }
  Result<void> record_step_input(kernels::Context ctx, const lowering::StepIo& io);
  Task<Result<void>> make_stream_buffers(gpu::PlanBuilder& builder);
  // The lane persistent: device_model_persistent.cpp.
  bool wants_persistent() const {
    return options_.policy.allows(kernels::Lane::kPersistent) && !options_.all_logits &&
           why_not_persistent().empty();
  }
  // Why the lane's kernel does not serve what was loaded; "" if nothing speaks against it.
  std::string why_not_persistent() const;
  void tell_of_persistent() const;
  Task<Result<void>> make_exchange(gpu::PlanBuilder& builder);
  Task<Result<uint32_t>> count_persistent(const gpu::Plan& counted);
  Task<Result<uint32_t>> count_persistent();
  Task<Result<void>> confirm_persistent();
  void refuse_persistent(const std::string& reason);
  bool uses_persistent() const { return exchange_ && !persistent_refused_; }
  std::unique_ptr<TicketWatch> make_watch();

  // Where experts are paged: device_model_paged_native.cpp.
  Task<Result<void>> make_pager(const formats::Checkpoint& checkpoint, std::vector<PagedWeight> weights);
  void make_paged(HalvedRunner& runner);
  std::function<Task<Result<const gpu::Plan*>>(const gpu::Plan&, uint32_t)> part_runner();

  const gpu::Plan& plan(std::string_view name) const;
  struct RowClass {
    std::string_view name;
    uint32_t rows = 0;  // at most
  };
  bool has_narrow_plans() const;
  std::vector<RowClass> row_classes() const;
  // "prefill.greedy", or "narrow.greedy" or "skinny.greedy" if there are so few rows.
  const gpu::Plan& plan_of_rows(std::string_view kind, uint32_t rows) const;

  // Views of the shared buffers, valid while recording.
  struct Views {
    kernels::TensorView stream, state, tokens, token_types, row, normed_row, logits, hidden, params, bias,
        counts, recent, token, ring, behind, next_logits, images, image_places, image_axes, image_shifts,
        image_spans, image_window_spans;
  };

  gpu::Device& device_;
  formats::ModelConfig config_;
  RunnerOptions options_;
  MemoryEstimate memory_;
  LoadTimes load_times_;
  std::vector<kernels::Choice> choices_;
  graph::Graph graph_;
  lowering::BoundWeights bound_;
  std::vector<lowering::PlanReport> reports_;
  Views views_;
  std::vector<std::unique_ptr<gpu::Buffer>> buffers_;
  std::deque<gpu::Buffer> weights_;
  KvCache cache_;
  AdapterSet adapters_;
  RecurrentStates states_;
  gpu::Buffer *state_ = nullptr, *tokens_ = nullptr, *token_types_ = nullptr, *logits_ = nullptr,
              *hidden_ = nullptr, *params_ = nullptr, *bias_ = nullptr, *counts_ = nullptr,
              *recent_ = nullptr, *ring_ = nullptr, *next_logits_ = nullptr;
  StreamIn stream_in_;
  StreamOut stream_out_;
  gpu::BuiltPlans built_;
  ChoicePlans choice_plans_;
  DraftPlans draft_plans_;
  DraftNeed recorded_need_;          // of the plans of steps that draft, while they are recorded
  gpu::ReadbackRing faults_;         // of the persistent kernel, a word a ticket, until there is a watch
  gpu::Buffer* exchange_ = nullptr;  // null: this lane was not asked for
  lowering::PersistentIo persistent_;
  bool persistent_refused_ = false;  // the chain is used, for a reason that was told

  RouteBuffers routes_;
  lowering::PagedRoutes paged_;
  std::unique_ptr<ExpertPager> pager_;
  std::unique_ptr<HostTable> host_table_;

  std::unique_ptr<ImageStore> images_;
  graph::Graph image_graph_;  // graph_ with rows of pictures
  lowering::BoundWeights image_bound_;
  gpu::Buffer *image_places_ = nullptr, *image_axes_ = nullptr, *image_shifts_ = nullptr;
  gpu::Buffer *image_spans_ = nullptr, *image_window_spans_ = nullptr;

  bool drafts_ = false;  // plans have the next-token layer
  std::string drafts_refused_;

  kernels::StepTables tables_;  // sequences 0: plans of one
  std::unique_ptr<SequencePlans> many_;

  std::unique_ptr<TicketWatch> watch_;
  std::unique_ptr<OneSequence> one_;
  std::unique_ptr<SequenceRunner> paged_runner_;  // before one_ or many_, if experts are paged
  std::unique_ptr<AllRows> all_rows_;
  SequenceRunner* runner_ = nullptr;
};

}  // namespace doppler::model
