// A request on its way through the scheduler, and the arithmetic of its positions.
//
// With a prompt of P tokens, the first token is chosen by the prompt's last row, and each decode step feeds the newest
// token: the g-th token of an answer is chosen at position P + g - 2 and stands, once fed, at P + g - 1. So `asked`
// tokens need P + asked - 1 positions, and a context of C positions ends an answer at C - P + 1 tokens.
// A sequence that was preempted begins again with a prompt of its own and the tokens it had chosen; P stays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/scheduler/prefix_key.h"
#include "engine/scheduler/stream.h"
#include "engine/scheduler/text_index.h"
#include "engine/scheduler/window_blocks.h"

namespace doppler::engine {

enum class Phase : uint8_t {
  kWaiting,    // in the queue, without slot and blocks
  kPrefill,    // in a slot; its prompt is not queued to the end
  kDecode,     // in a slot; its first token is queued or there
  kPreempted,  // nothing more is queued; goes back to the queue when its tickets are collected
  kEnded,      // its stream has ended; slot and blocks leave when its tickets are collected
};

struct Sequence {
  uint64_t serial = 0;  // order of submission, and the stream's id
  Request request;
  std::shared_ptr<Stream> stream;  // has the tokens: the prompt and what was chosen, as far as collected
  uint32_t prompt_len = 0;         // P
  uint32_t limit = 0;              // most tokens of the answer: by max_tokens and by the context
  bool limit_is_context = false;
  uint64_t forked_from = 0;  // serial whose last block may be copied; 0: none
  Clock::time_point submitted_at;
  uint64_t charged = 0;  // tokens that its client has paid for
  bool begun = false;    // it has been in a slot before

  Phase phase = Phase::kWaiting;
  uint32_t slot = 0;
  std::vector<uint32_t> blocks;  // its table
  WindowTable windows;           // its other one
  std::vector<PrefixKey> keys;  // of its full blocks: of the prompt when it begins, of the answer as it comes
  uint32_t published = 0;       // blocks with keys that were offered to the pool
  uint32_t fed = 0;             // positions of the prompt that are in blocks or queued
  uint32_t feed_to = 0;         // tokens().size() when it got its slot: where its prefill ends
  uint32_t asked = 0;           // tokens of the answer that are queued or there
  uint32_t in_flight = 0;       // tickets that contain it
  std::vector<uint32_t> cuts;  // ascending positions of its prompt, not fed yet, at which its states are kept
  uint32_t kept = 0;           // the last position at which they were
  std::vector<uint32_t> mask;  // of a guided one: the tokens that may be next
  uint32_t piece_rows = ~0u;   // of its prompt at a time, so that a stop is seen soon
  Clock::time_point piece_done_at;
  DraftPolicy drafts;
  TextIndex index;                           // of its tokens, if the drafter is lookup
  std::vector<uint32_t> proposed;            // a draft model's guesses after its tokens
  std::vector<uint32_t> given;               // the drafts of its next step, if the host gives them
  std::vector<std::vector<uint32_t>> masks;  // what each row may choose, if it is guided
  size_t indexed = 0;                        // tokens
  Clock::time_point tokens_at;               // when the last ones came
  bool has_waited = false;                   // its last step waited for a draft model

  const std::vector<uint32_t>& tokens() const { return stream->sequence(); }
  uint32_t seen() const { return static_cast<uint32_t>(tokens().size()) - prompt_len; }
  bool running() const { return phase == Phase::kPrefill || phase == Phase::kDecode; }
  bool leaving() const { return phase == Phase::kPreempted || phase == Phase::kEnded; }
  bool guided() const { return request.guide != nullptr; }
  // A guided one may choose only when its last token is known.
  bool may_decode() const { return phase == Phase::kDecode && asked < limit && !(guided() && in_flight > 0); }
  // Where the next piece of its prompt ends at the latest.
  uint32_t piece_end() const { return cuts.empty() ? feed_to : cuts.front(); }
  // Positions that are written when everything queued has run and then `more` steps. Drafts may ask for more tokens
  // than there may be.
  uint32_t positions(uint32_t more) const {
    return fed < feed_to ? feed_to : std::max(feed_to, prompt_len + std::min(asked + more, limit) - 1);
  }
  // Positions, from 0 on, whose tokens are known and which are written or will be by what is queued.
  uint32_t known_positions() const {
    return fed < feed_to ? fed : std::max(fed, static_cast<uint32_t>(tokens().size()) - 1);
  }
};

inline uint32_t blocks_of(uint32_t positions, uint32_t block_len) {
  return (positions + block_len - 1) / block_len;
}

}  // namespace doppler::engine
