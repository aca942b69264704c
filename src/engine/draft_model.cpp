#include "engine/draft_model.h"

#include <algorithm>

#include "kernels/common/step_state.h"

namespace doppler::engine {

Result<void> check_same_vocabulary(const LoadedModel& model, const LoadedModel& draft) {
  const uint32_t size = model.runner->config().vocab_size, of_draft = draft.runner->config().vocab_size;
  const tokenizer::Tokenizer* const ours = model.text.tokenizer.get();
  const tokenizer::Tokenizer* const its = draft.text.tokenizer.get();
  if (ours && its) {
    // Models of one family differ in the number of the head's rows after the last token that has a text. No answer
    // needs these rows.
    const auto count = static_cast<int32_t>(std::max(ours->vocab_size(), its->vocab_size()));
    for (int32_t id = 0; id < count; ++id) {
      const bool in_both =
          id < static_cast<int32_t>(ours->vocab_size()) && id < static_cast<int32_t>(its->vocab_size());
      if (in_both && ours->token_bytes(id) == its->token_bytes(id)) continue;
      const auto shown = [id](const tokenizer::Tokenizer& of) {
        return id < static_cast<int32_t>(of.vocab_size()) ? "\"" + printable(of.token_bytes(id), 40) + "\""
                                                          : std::string("not there");
      };
      return fail(
          ErrorKind::kUnsupported,
          "The draft model has another vocabulary: token %d is %s in the model and %s in the draft model.",
          id, shown(*ours).c_str(), shown(*its).c_str());
    }
    return {};
  }
  if (size == of_draft) return {};
  return fail(ErrorKind::kUnsupported,
              "The draft model has another vocabulary: %u tokens, and the model has %u.", of_draft, size);
}

Result<void> add_draft_model(LoadedModel& model, std::unique_ptr<LoadedModel> draft) {
  model::SequenceRunner* const steps = model.runner->runner();
  model::SequenceRunner* const its = draft->runner->runner();
  if (!steps || !its || steps->max_sequences() != 1 || its->max_sequences() != 1) {
    return fail(ErrorKind::kUnsupported,
                "A draft model drafts for one sequence, and the model was loaded for several; load it for "
                "one (serve --parallel 1).");
  }
  DP_CHECK(check_same_vocabulary(model, *draft));
  model.drafter = std::make_unique<DraftModel>(*its);
  model.draft = std::move(draft);
  return {};
}

// Collects tickets until `left` remain.
Task<Result<void>> DraftModel::collect(size_t left, std::vector<uint32_t>& drafts) {
  while (tickets_.size() > left) {
    const model::Ticket ticket = tickets_.front();
    tickets_.erase(tickets_.begin());
    DP_CO_TRY(const std::vector<uint32_t> tokens, co_await runner_.tokens(ticket));
    for (const uint32_t token : tokens)
      if (token != kernels::kNoToken && token != kernels::kNotFinite) drafts.push_back(token);
  }
  co_return Result<void>();
}

Task<Result<std::vector<uint32_t>>> DraftModel::propose(std::span<const uint32_t> text, uint32_t most) {
  std::vector<uint32_t> drafts;
  if (text.empty() || text.size() + most > runner_.ctx_len() || most == 0) co_return drafts;
  const auto [a, b] = std::ranges::mismatch(held_, text.first(text.size() - 1));
  const uint32_t start = runner_.continues_from(static_cast<uint32_t>(a - held_.begin()));
  model::GenerationSettings settings;
  settings.max_tokens = most;
  settings.ignore_stop = true;
  DP_CO_CHECK(runner_.begin(0, settings, text.first(start)));
  held_.clear();  // until all has succeeded
  for (size_t at = start; at < text.size();) {
    auto waiting = collect(runner_.max_tickets() - 1, drafts);
    DP_CO_CHECK(co_await std::move(waiting));
    const size_t count = std::min<size_t>(runner_.max_rows(), text.size() - at);
    const bool is_last = at + count == text.size();
    const model::Piece piece{.pos = static_cast<uint32_t>(at),
                             .tokens = text.subspan(at, count),
                             .sample = is_last,
                             .next = is_last ? std::nullopt : std::optional(text[at + count])};
    DP_CO_TRY(const model::Ticket ticket, runner_.step({}, {&piece, 1}));
    tickets_.push_back(ticket);
    at += count;
  }
  if (most > 1) {
    auto waiting = collect(runner_.max_tickets() - 1, drafts);
    DP_CO_CHECK(co_await std::move(waiting));
    constexpr uint32_t kSlot = 0;
    DP_CO_TRY(const model::Ticket ticket, runner_.decode({&kSlot, 1}, {.steps = most - 1}));
    tickets_.push_back(ticket);
  }
  auto waiting = collect(0, drafts);
  DP_CO_CHECK(co_await std::move(waiting));
  held_.assign(text.begin(), text.end());
  if (!drafts.empty()) held_.insert(held_.end(), drafts.begin(), drafts.end() - 1);
  co_return drafts;
}

}  // namespace doppler::engine
