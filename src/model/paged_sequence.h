// The steps of a model for one sequence whose experts are paged (expert_pager.h). A step waits for routes. So the
// calls are queued, and they run in their order when the caller asks for a ticket's tokens.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "model/expert_pager.h"
#include "model/one_sequence.h"

namespace doppler::model {

class PagedSequence final : public SequenceRunner {
 public:
  // Both must outlive it.
  PagedSequence(OneSequence& one, ExpertPager& pager) : one_(one), pager_(pager) {}

  uint32_t max_sequences() const override { return 1; }
  uint32_t ctx_len() const override { return one_.ctx_len(); }
  uint32_t block_len() const override { return one_.block_len(); }
  uint32_t block_count() const override { return one_.block_count(); }
  uint32_t max_rows() const override { return one_.max_rows(); }
  uint32_t max_pieces() const override { return one_.max_pieces(); }
  uint32_t max_steps() const override { return 1; }
  uint32_t max_tickets() const override { return one_.max_tickets(); }
  uint32_t max_block_reads() const override { return 0; }
  bool holds_text() const override { return true; }
  uint32_t continues_from(uint32_t count) const override {
    return later_.empty() ? one_.continues_from(count) : 0;
  }

  std::span<const uint32_t> draft_rows(const DraftNeed& need) const override { return one_.draft_rows(need); }
  bool drafts_by_host() const override { return one_.drafts_by_host(); }
  bool may_prepare_drafts(const DraftNeed& need, uint32_t slots) const override {
    return one_.may_prepare_drafts(need, slots);
  }
  Task<Result<void>> prepare_drafts(DraftNeed need, uint32_t slots) override {
    return one_.prepare_drafts(need, slots);
  }

  std::shared_ptr<const AdapterMix> first_adapters() const override { return one_.first_adapters(); }
  Result<void> check(const GenerationSettings& settings) const override { return one_.check(settings); }
  bool is_prepared(const GenerationSettings& settings) const override { return one_.is_prepared(settings); }
  bool can_prepare(const GenerationSettings& settings) const override { return one_.can_prepare(settings); }
  Task<Result<void>> prepare(const GenerationSettings& settings) override { return one_.prepare(settings); }
  uint64_t objects_created_later() const override { return one_.objects_created_later(); }
  Result<void> begin(uint32_t slot, const GenerationSettings& settings,
                     std::span<const uint32_t> before) override;
  void end(uint32_t slot) override { one_.end(slot); }
  Result<void> mask(uint32_t slot, std::span<const uint32_t> allowed) override;
  Result<Ticket> step(std::span<const uint32_t> decoding, std::span<const Piece> pieces) override;
  Result<Ticket> decode(std::span<const uint32_t> decoding, const DecodeSteps& steps) override;
  Task<Result<std::vector<uint32_t>>> tokens(Ticket ticket) override;
  Task<Result<std::vector<kernels::LogProbEntry>>> logprobs(Ticket ticket) override {
    return one_.logprobs(ticket);
  }
  Task<Result<std::vector<uint8_t>>> save(uint32_t count) override;
  Task<Result<void>> restore(uint32_t count, std::span<const uint8_t> bytes) override;

 private:
  struct Later {
    enum class Kind : uint8_t { kBegin, kMask, kPrompt, kDecode } kind;
    std::vector<uint32_t> words = {};               // tokens before, allowed ones, tokens of a piece, drafts
    std::vector<std::vector<uint32_t>> masks = {};  // of the rows of a step with drafts
    GenerationSettings settings = {};
    Piece piece = {};
    Ticket ticket = {};
    bool has_ticket() const { return kind == Kind::kPrompt || kind == Kind::kDecode; }
  };
  Ticket queue(Later later);
  Task<Result<void>> run(std::optional<uint32_t> slot);  // up to its ticket; none: all
  Task<Result<void>> run_now(Later later);

  OneSequence& one_;
  ExpertPager& pager_;
  std::deque<Later> later_;
};

}  // namespace doppler::model
