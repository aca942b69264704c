// One model step, seen from the engine: queue a prefill chunk, queue some decode steps, collect tokens later.
// PlanRunner (plan_runner.h) does it on the GPU; tests of the engine use a scripted one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "kernels/sample/sample.h"

namespace doppler::model {

inline constexpr uint32_t kDefaultBatch = 16;  // decode steps of one submit, where nothing says otherwise

// Everything about one generation that the GPU must know before its first token.
struct GenerationSettings {
  bool greedy = true;
  kernels::SampleParams sampling;  // used unless greedy, but for `logprobs`, which holds for both
  std::vector<std::pair<uint32_t, float>> logit_bias;  // token, added; at most kMaxLogitBias
  uint64_t seed = 0;
  uint32_t generated = 0;   // tokens chosen before this begin: the random counter goes on from there
  uint32_t max_tokens = 0;  // generated at most, with those chosen before
  std::vector<uint32_t> stop_tokens;  // at most kMaxStopTokens
  bool ignore_stop = false;
  bool masked = false;                 // each token is chosen by a mask (SequenceRunner::mask)
  std::vector<uint32_t> dry_breakers;  // tokens; of kernels/sample/more.h
};

// Tokens back that penalties and DRY look, at most.
inline constexpr uint32_t kRecentTokens = kernels::kDryHistory;
// What costs a sampled token further dispatches: plans have it where a generation asks for it (choice_plans.h).
struct SamplerParts {
  bool all_samplers = false;  // those of kernels/sample/more.h
  bool logprobs = false;
  bool masks = false;  // of tokens

  bool any() const { return all_samplers || logprobs || masks; }
  bool operator==(const SamplerParts&) const = default;
  SamplerParts operator|(const SamplerParts& other) const {
    return {.all_samplers = all_samplers || other.all_samplers,
            .logprobs = logprobs || other.logprobs,
            .masks = masks || other.masks};
  }
};
SamplerParts parts_of(const GenerationSettings& settings);
// Errors: more stop tokens or biases than the device takes.
Result<void> check_settings(const GenerationSettings& settings);
// Why steps that draft cannot serve a generation: "" if they can. They choose two tokens at a time, so nothing may depend on
// the first one's place in the text.
std::string refuse_drafts(const GenerationSettings& settings);
// Greedy plans choose tokens, tell no probabilities and know no masks; sampled ones do all that.
inline bool takes_greedy_plan(const GenerationSettings& settings) {
  return settings.greedy && settings.sampling.logprobs == 0 && !settings.masked;
}
// What the penalties and DRY know before a token that will stand at position `end`, of the text's last tokens
// (kernels/step/step.h, kernels/sample/more.h).
struct PastTokens {
  std::vector<uint32_t> counts, recent, breakers;
  kernels::MoreState more;
};
PastTokens past_tokens(const GenerationSettings& settings, std::span<const uint32_t> last, uint32_t end,
                       uint32_t vocab_size);

// Names one queued submit whose tokens can be collected, once, in order.
struct Ticket {
  uint32_t slot = 0;
  uint32_t count = 0;  // tokens it will give; entries after a stop are kNoToken
  bool has_logprobs = false;
  bool drafts = false;  // of steps that draft: its tokens may be as few as half of `count`
};

// Of the tokens that tickets gave: how many were drafted, and how many of those were right and stayed.
struct DraftCounts {
  uint64_t drafted = 0, accepted = 0;
};

// Of tokens that are fed in chunks: the one behind a chunk that ends at `end`; none behind the last.
inline std::optional<uint32_t> token_behind(std::span<const uint32_t> tokens, size_t end) {
  return end < tokens.size() ? std::optional(tokens[end]) : std::nullopt;
}

class StepRunner {
 public:
  virtual ~StepRunner() = default;

  virtual uint32_t ctx_len() const = 0;      // positions the cache holds
  virtual uint32_t chunk() const = 0;        // most tokens of one prefill
  virtual uint32_t max_batch() const = 0;    // most decode steps of one ticket
  virtual uint32_t max_tickets() const = 0;  // tickets whose tokens may be outstanding at a time

  // Whether the plans that a generation needs are there; or else prepare() makes them. Before begin().
  virtual bool is_prepared(const GenerationSettings&) const { return true; }
  virtual Task<Result<void>> prepare(const GenerationSettings&) { co_return Result<void>(); }
  // Starts a generation that continues after `pos` cached tokens; `before` are those tokens (for the penalties).
  virtual Result<void> begin(const GenerationSettings& settings, std::span<const uint32_t> before) = 0;
  // Queues 1..chunk() tokens. next: the token behind them; none: they are the prompt's last ones and a token is chosen, which
  // the ticket gives.
  virtual Result<Ticket> prefill(std::span<const uint32_t> tokens, std::optional<uint32_t> next) = 0;
  // Queues a ticket without tokens (count 0): tokens() gives it when all before it is done.
  virtual Result<Ticket> mark() = 0;
  // Queues up to submits * steps steps, 1..max_batch() in all, each feeding the token of the one before. Their tokens
  // come back together, with the last submit; the ticket says how many steps were queued.
  // drafts: steps that draft a token each and give it too where it was right. Only where can_draft().
  virtual Result<Ticket> decode(uint32_t steps, uint32_t submits, bool drafts) = 0;
  // Whether the generation that was begun may draft.
  virtual bool can_draft() const { return false; }
  virtual DraftCounts draft_counts() const { return {}; }
  virtual Task<Result<std::vector<uint32_t>>> tokens(Ticket ticket) = 0;
  // Of a ticket that has them, once, behind tokens(): an entry a token.
  virtual Task<Result<std::vector<kernels::LogProbEntry>>> logprobs(Ticket ticket) = 0;

  // Asked, once, when tokens() failed. true: the tokens of that ticket and of all behind it are lost, and so is their
  // place in the cache, but from the next begin() on the runner works in another way that does not have this fault.
  virtual bool goes_on_without_lost() { return false; }

  // The largest position, at most `count`, behind which a generation can continue the text in the cache: `count`, or less
  // where layers have a recurrent state, which cannot be cut. Asked between generations.
  virtual uint32_t continues_from(uint32_t count) const { return count; }

  // The cache of positions [0, count), `count` one of continues_from()'s, for saving a session, and back. Layout: PlanRunner's own; opaque.
  virtual Task<Result<std::vector<uint8_t>>> save_cache(uint32_t count) = 0;
  virtual Task<Result<void>> restore_cache(uint32_t count, std::span<const uint8_t> bytes) = 0;
};

}  // namespace doppler::model
