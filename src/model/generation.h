// The facts that a runner needs of a generation before its first token, and what it gives back: tickets of tokens.
// Read next: sequence_runner.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kernels/common/step_state.h"
#include "kernels/sample/sample.h"
#include "model/adapter_mix.h"
#include "model/drafter.h"

namespace doppler::model {

inline constexpr uint32_t kDefaultBatch = 16;  // decode steps of one submit, unless a caller says otherwise

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
  Drafter drafter = Drafter::kNone;
  std::vector<uint32_t>
      prediction;  // tokens that the answer may repeat; the drafter lookup searches them too
  std::shared_ptr<const AdapterMix> adapters;  // of its rows at positions adapters_from and later; null: none
  uint32_t adapters_from = 0;
};

// Tokens back that penalties and DRY look, at most.
inline constexpr uint32_t kRecentTokens = kernels::kDryHistory;
// Features that cost a sampled token further dispatches: plans have them if a generation asks for them
// (choice_plans.h).
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
inline SamplerParts parts_of(const GenerationSettings& settings) {
  return {.all_samplers = !settings.greedy && kernels::uses_more(settings.sampling),
          .logprobs = settings.sampling.logprobs != 0,
          .masks = settings.masked};
}
// Errors: more stop tokens or biases than the device takes.
Result<void> check_settings(const GenerationSettings& settings);
inline bool has_penalties(const GenerationSettings& settings) {
  const kernels::SampleParams& p = settings.sampling;
  return !settings.greedy && (p.repeat_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0);
}
// Says why steps that draft cannot serve a generation; "" if they can. They choose several tokens at a time. So each
// choice may depend only on the tokens before it, and not on how they were drawn.
inline std::string refuse_drafts(const GenerationSettings& settings) {
  if (!settings.greedy && settings.sampling.mirostat_tau > 0)
    return "mirostat chooses by how surprising the token before was";
  return "";
}
// Greedy plans choose tokens, tell no probabilities and know no masks; sampled ones do all that.
inline bool takes_greedy_plan(const GenerationSettings& settings) {
  return settings.greedy && settings.sampling.logprobs == 0 && !settings.masked;
}
// The state of the penalties and DRY before a token that will stand at position `end`, from the text's last tokens
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
  uint32_t count = 0;  // entries a slot that it will give; those after a stop are kNoToken
  bool has_logprobs = false;
  // The entries of each step: 1, or a token and its drafts. Readers leave out the entries of wrong drafts
  // (kernels::is_left_out).
  uint32_t rows = 1;
};

// Counts of tickets that drafted: the drafts, and the right ones, which stayed.
struct DraftTally {
  uint64_t drafted = 0, accepted = 0;
  // Adds the entries of a ticket whose steps have `rows`.
  void add(std::span<const uint32_t> entries, uint32_t rows) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i % rows == 0 || entries[i] == kernels::kNoToken || entries[i] == kernels::kNoDraft) continue;
      ++drafted;
      if (entries[i] != kernels::kRejected) ++accepted;
    }
  }
};

// The last tokens of a text, as many as penalties and DRY look back.
void keep_recent(std::vector<uint32_t>& recent, std::span<const uint32_t> tokens);
// A slot's mask as kernels/sample/sample.h has it, of the tokens that are allowed: bit t % 32 of word t / 32.
std::vector<uint32_t> mask_row(std::span<const uint32_t> allowed, uint32_t vocab_size);

}  // namespace doppler::model
