// The plans of steps that draft (drafter.h). They are made when a request first wants them, and do not change the plans
// of the load. The loaded model records them (device_model_draft.cpp), and the runner replays them (one_sequence.h,
// sequence_plans_drafts.cpp).
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "kernels/step/draft_text.h"
#include "model/choice_plans.h"
#include "model/draft_need.h"
#include "model/drafter.h"
#include "model/generation.h"
#include "model/plan_row.h"
#include "model/sequence_runner.h"

namespace doppler::model {

// Buffers of steps that draft, besides those of other plans. Only the next-token layer has `next`. Settings and pasts
// are there once for each row (Sample::rows). `past` has those of a plan of one row.
struct DraftViews {
  kernels::TensorView text, choices, logits, next, params, bias, counts, more, breakers, masks;
  ChoiceViews past;
};

struct DraftShape {
  uint32_t ctx_len = 0;  // 0: the plans do not search, since the host gives all drafts
  uint32_t vocab_size = 0;
  uint32_t most_rows = 1;  // of a step; 1: no plans, the model does not draft
};

class DraftPlans {
 public:
  // Records the plan of a row.
  using Record = std::function<Result<void>(gpu::PlanBuilder&, const PlanRow&, const DraftNeed&)>;
  // Records what comes before the drafting steps of a ticket.
  using RecordText = std::function<Result<void>(gpu::PlanBuilder&)>;

  // Makes the buffers that the load's plans use if the model has a next-token layer. Call this before they are
  // recorded.
  Task<Result<void>> make_buffers(gpu::Device& device, gpu::PlanBuilder& builder, DraftShape shape);
  // `builder` knows all buffers and has no recordings. The device must outlive this object.
  void begin(gpu::Device& device, gpu::PlanBuilder builder, DraftShape shape, const ChoicePlans& choices);

  // The need of the plans that serve this one. In steps of several sequences, whose needs differ from step to step,
  // these may do more. Call this only if rows(need) is not empty.
  const DraftNeed& served_by(const DraftNeed& need) const { return find(need)->need; }
  // The numbers of rows that have plans for this need, ascending. Empty: there is no plan yet.
  std::span<const uint32_t> rows(const DraftNeed& need) const;
  // Says whether add() may make a plan for so many slots: one is missing, the model can draft so, and no attempt has
  // failed.
  bool may_add(const DraftNeed& need, uint32_t slots) const;
  // Makes the plan of the fewest rows. Takes one call at a time. Error: the plans cannot be made, now or later.
  Task<Result<void>> add(DraftNeed need, uint32_t slots, Record record, RecordText record_text);

  // Call this only if rows(need) has the number.
  const gpu::Plan& plan(const DraftNeed& need, uint32_t rows) const;
  // The plan of the fewest rows that has so many.
  const gpu::Plan& least_plan(const DraftNeed& need, uint32_t rows) const;
  std::span<const gpu::Plan* const> plans(const DraftNeed& need) const { return find(need)->plans; }
  const gpu::Plan& text_plan() const { return *text_plan_; }
  const gpu::Buffer& text() const { return *text_; }
  // Writes the settings of rows of a choice that is not greedy, from `first` on. Call this only if such plans are
  // there.
  Result<void> write_settings(gpu::Device& device, const GenerationSettings& settings, const PastTokens& past,
                              uint32_t first, uint32_t rows) const;
  // Writes the tokens of the rows, and the number of drafts that a plan of one sequence takes.
  Result<void> write_rows(gpu::Device& device, std::span<const uint32_t> tokens) const;
  Result<void> write_given(gpu::Device& device, uint32_t drafts) const;
  // Writes the masks of rows from `first` on. An empty one allows all tokens.
  Result<void> write_masks(gpu::Device& device, uint32_t first,
                           std::span<const std::vector<uint32_t>> masks) const;
  const DraftViews& views() const { return views_; }
  uint32_t most_rows() const { return shape_.most_rows; }
  uint32_t text_places() const { return places_; }               // for the text and the prediction before it
  uint64_t objects_created() const { return objects_created_; }  // by add()

 private:
  struct Made {
    DraftNeed need;
    std::vector<uint32_t> rows;
    std::vector<const gpu::Plan*> plans;  // one each
  };
  Task<Result<gpu::Buffer*>> buffer(gpu::Device& device, gpu::PlanBuilder& builder, const char* name,
                                    uint64_t bytes, kernels::TensorView* view);
  Task<Result<void>> make_rows(gpu::PlanBuilder& builder, DraftNeed need);
  Task<Result<void>> make_text(gpu::Device& device, gpu::PlanBuilder& builder);
  Task<Result<void>> build(DraftNeed need, uint32_t next_rows, Record record, RecordText record_text);
  bool is_shared() const { return shape_.ctx_len == 0; }
  DraftNeed need_to_make(DraftNeed need) const;
  uint32_t next_rows(const DraftNeed& need, uint32_t slots) const;
  const Made* find(const DraftNeed& need) const;

  gpu::Device* device_ = nullptr;
  std::optional<gpu::PlanBuilder> builder_;
  DraftShape shape_;
  uint32_t places_ = 0;
  std::deque<gpu::Buffer> buffers_;
  std::vector<gpu::Buffer> owned_;  // of the plans
  DraftViews views_;
  gpu::Buffer *text_ = nullptr, *params_ = nullptr, *bias_ = nullptr, *breakers_ = nullptr, *masks_ = nullptr;
  const ChoicePlans* choices_ = nullptr;
  std::optional<gpu::Plan> text_plan_;
  std::deque<gpu::Plan> plans_;  // callers keep their addresses
  std::deque<Made> made_;
  std::vector<DraftNeed> failed_;
  uint64_t objects_created_ = 0;
};

}  // namespace doppler::model
