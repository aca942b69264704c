// Some generations ask for more than a token: further samplers, log-probabilities, masks (SamplerParts). Each part
// takes buffers, and dispatches where a plan chooses its tokens. So parts are made when a generation first asks for
// them: the choice of each sampled plan is recorded once more, and a second plan has it in place of the first one's.
// The first plans do not change. Read next: DeviceModel::record_choice (device_model_record.cpp).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "kernels/sample/sample.h"
#include "model/generation.h"
#include "model/plan_row.h"

namespace doppler::model {

// The commands of a sampled plan that choose its token.
struct ChoiceSection {
  PlanRow row;
  uint32_t first = 0, end = 0;
};

// The further buffers that a choice reads and writes. A view is invalid if the plan has no such part.
struct ChoiceViews {
  kernels::TensorView more, breakers, logprobs, mask;
};

struct ChoiceShape {
  uint32_t sequences = 1, vocab_size = 0, tickets = 0;
  uint64_t ring_entries = 0;    // tokens of the output ring, of all sequences
  uint64_t ticket_entries = 0;  // most tokens that one ticket reads
};

class ChoicePlans {
 public:
  // Records only the choice of a plan, as a plan of this name.
  using Record = std::function<Result<void>(gpu::PlanBuilder&, const PlanRow&, const std::string& name,
                                            const ChoiceViews&)>;

  // `builder` knows all buffers and has no recordings. The device must outlive this object.
  void begin(gpu::Device& device, gpu::PlanBuilder builder, ChoiceShape shape);
  const gpu::PlanBuilder& builder() const { return *builder_; }
  // Plans that are recorded again have other sections.
  void forget_sections() { sections_.clear(); }
  void add_section(ChoiceSection section) { sections_.push_back(std::move(section)); }

  bool has(SamplerParts parts) const;
  // Afterwards has() is true for these parts, also together with earlier ones. One call at a time.
  Task<Result<void>> add(SamplerParts parts, const std::vector<gpu::Plan>& plans, Record record);
  // `base` with these parts, which has() knows.
  const gpu::Plan& of(const gpu::Plan& base, SamplerParts parts) const;

  // Null before the first generation that needs them.
  const gpu::Buffer* more() const { return more_; }
  const gpu::Buffer* breakers() const { return breakers_; }
  const gpu::Buffer* logprobs() const { return logprobs_; }
  const gpu::Buffer* mask() const { return mask_; }
  const gpu::ReadbackRing& logprob_readback() const { return logprob_readback_; }
  uint64_t objects_created() const { return objects_created_; }  // by add()

 private:
  Task<Result<void>> make_buffers(SamplerParts parts);
  Task<Result<gpu::Buffer*>> buffer(const char* name, uint64_t bytes, kernels::TensorView* view);
  ChoiceViews views_of(SamplerParts parts) const;

  gpu::Device* device_ = nullptr;
  std::optional<gpu::PlanBuilder> builder_;
  ChoiceShape shape_;
  std::vector<ChoiceSection> sections_;
  std::vector<SamplerParts> known_ = {SamplerParts()};
  std::map<std::string, gpu::Plan, std::less<>> plans_;
  std::deque<gpu::Buffer> buffers_;
  std::vector<gpu::Buffer> owned_;  // of the plans
  ChoiceViews views_;
  gpu::Buffer *more_ = nullptr, *breakers_ = nullptr, *logprobs_ = nullptr, *mask_ = nullptr;
  gpu::ReadbackRing logprob_readback_;
  uint64_t objects_created_ = 0;
};

}  // namespace doppler::model
