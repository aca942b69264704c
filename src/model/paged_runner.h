// The steps of a model whose experts are paged (expert_pager.h). A step waits for routes. So step() and decode() only
// open a step (open_step.h), and tokens() brings the experts and closes it. The calls between them write what later
// steps read. They are kept until the step is closed, and then made in their order.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "model/expert_pager.h"
#include "model/open_step.h"

namespace doppler::model {

class PagedRunner final : public SequenceRunner {
 public:
  // Both must outlive it.
  PagedRunner(HalvedRunner& runner, ExpertPager& pager) : runner_(runner), pager_(pager) {}

  uint32_t max_sequences() const override { return runner_.max_sequences(); }
  uint32_t ctx_len() const override { return runner_.ctx_len(); }
  uint32_t block_len() const override { return runner_.block_len(); }
  uint32_t block_count() const override { return runner_.block_count(); }
  uint32_t max_rows() const override { return runner_.max_rows(); }
  uint32_t max_pieces() const override { return runner_.max_pieces(); }
  uint32_t max_steps() const override { return 1; }
  uint32_t max_tickets() const override { return 1; }
  uint32_t max_block_reads() const override { return runner_.max_block_reads(); }
  uint32_t prompt_share() const override { return runner_.prompt_share(); }
  uint32_t window() const override { return runner_.window(); }
  uint32_t window_block_count() const override { return runner_.window_block_count(); }
  bool has_states() const override { return runner_.has_states(); }
  uint32_t checkpoint_count() const override { return runner_.checkpoint_count(); }
  bool holds_text() const override { return runner_.holds_text(); }
  uint32_t continues_from(uint32_t count) const override {
    return opened_ ? 0 : runner_.continues_from(count);
  }

  std::span<const uint32_t> draft_rows(const DraftNeed& need) const override {
    return runner_.draft_rows(need);
  }
  bool drafts_by_host() const override { return runner_.drafts_by_host(); }
  bool may_prepare_drafts(const DraftNeed& need, uint32_t slots) const override {
    return runner_.may_prepare_drafts(need, slots);
  }
  Task<Result<void>> prepare_drafts(DraftNeed need, uint32_t slots) override {
    return runner_.prepare_drafts(need, slots);
  }

  std::shared_ptr<const AdapterMix> first_adapters() const override { return runner_.first_adapters(); }
  Result<void> check(const GenerationSettings& settings) const override { return runner_.check(settings); }
  bool is_prepared(const GenerationSettings& settings) const override {
    return runner_.is_prepared(settings);
  }
  bool can_prepare(const GenerationSettings& settings) const override {
    return runner_.can_prepare(settings);
  }
  Task<Result<void>> prepare(const GenerationSettings& settings) override {
    return runner_.prepare(settings);
  }
  uint64_t objects_created_later() const override { return runner_.objects_created_later(); }

  Result<void> begin(uint32_t slot, const GenerationSettings& settings,
                     std::span<const uint32_t> before) override;
  void end(uint32_t slot) override;
  Result<void> map(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) override;
  Result<void> copy_block(uint32_t from, uint32_t to) override;
  Result<void> map_window(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) override;
  Result<void> copy_window_block(uint32_t from, uint32_t to) override;
  Result<void> save_states(uint32_t slot, uint32_t checkpoint) override;
  Result<void> load_states(uint32_t checkpoint, uint32_t slot) override;
  Result<void> mask(uint32_t slot, std::span<const uint32_t> allowed) override;
  Result<Ticket> step(std::span<const uint32_t> decoding, std::span<const Piece> pieces) override;
  Result<Ticket> decode(std::span<const uint32_t> decoding, const DecodeSteps& steps) override;
  Task<Result<std::vector<uint32_t>>> tokens(Ticket ticket) override;
  Task<Result<std::vector<kernels::LogProbEntry>>> logprobs(Ticket ticket) override {
    return runner_.logprobs(ticket);
  }
  Task<Result<std::vector<uint8_t>>> read_block(uint32_t block) override;
  Task<Result<void>> write_block(uint32_t block, std::span<const uint8_t> bytes) override;
  Task<Result<std::vector<uint8_t>>> save(uint32_t count) override;
  Task<Result<void>> restore(uint32_t count, std::span<const uint8_t> bytes) override;

 private:
  using Call = std::function<Result<void>()>;
  Result<void> in_turn(Call call);
  Completion<bool> turn();
  Result<Ticket> open(std::span<const uint32_t> decoding, std::span<const Piece> pieces,
                      const DecodeSteps& steps);
  Task<Result<void>> close();

  HalvedRunner& runner_;
  ExpertPager& pager_;
  std::optional<OpenStep> opened_;
  std::vector<Call> later_;  // the calls since it was opened
};

}  // namespace doppler::model
