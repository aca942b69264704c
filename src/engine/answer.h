// The answer that a generation comes to, token by token: its text in whole characters, and the reason of its end as the
// host sees it (end tokens, stop strings, the token limit). Where tokens come from is the caller's matter
// (stream_answer.h).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "doppler/doppler.h"
#include "engine/stop_strings.h"
#include "kernels/sample/sample.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"

namespace doppler::engine {

// The sentence for kernels::kNotFinite after `count` tokens of an answer.
inline Unexpected broken_logits(size_t count) {
  return fail(ErrorKind::kInvalidInput,
              "The logits after %zu tokens of the answer are no finite numbers: the model's weights are "
              "damaged, or its "
              "numbers overflow here; --lane exact has the widest range.",
              count);
}

class Answer {
 public:
  // `tokenizer` may be null: ids only, no text. It must outlive the answer. `show_special`: special tokens are part of
  // the text, but no end token is.
  Answer(const tokenizer::Tokenizer* tokenizer, std::vector<uint32_t> stop_tokens,
         const GenerateOptions& options, bool show_special = false);

  // Takes one token, with its log-probabilities or null; gives the text that is certain now. Precondition: not ended().
  std::string accept(uint32_t token, const kernels::LogProbEntry* logprobs);
  // It ends for a reason that its tokens do not show.
  void end(StopReason reason);
  bool ended() const { return ended_; }
  // Behind the end: the text that was held back. Once.
  std::string flush();
  bool is_stopped_by_text() const { return stops_.found(); }

  const Generation& result() const { return result_; }
  Generation& result() { return result_; }

 private:
  std::vector<uint32_t> stop_tokens_;
  bool ignore_eos_;
  uint32_t limit_;  // 0: none
  std::optional<tokenizer::StreamDecoder> decoder_;
  StopStrings stops_;
  bool ended_ = false;
  Generation result_;
};

}  // namespace doppler::engine
