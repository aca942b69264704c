// The answer to one request of the scheduler: the requests to submit (another one if a full context slides), and the
// text of the tokens that come back. Who carries them is the caller's matter: a thread (stream_native.cpp), or a
// browser's only one (web/web_streams.cpp).
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/answer.h"
#include "engine/generation_settings.h"
#include "engine/loaded_model.h"
#include "engine/scheduler/scheduler.h"

namespace doppler::engine {

// The news of a stream since the reader last asked.
struct Arrived {
  std::vector<uint32_t> tokens;
  std::vector<kernels::LogProbEntry> logprobs;  // one a token, or none
  bool accepted = false;                        // the scheduler took the request
  bool has_more = false;                        // that the reader did not want yet
  bool ended = false;                           // with one of the two
  std::optional<StopReason> reason;
  std::optional<Error> error;
  StreamTimings timings;
};

AnswerConfig answer_config(const LoadedModel& loaded);
// For the scheduler over a loaded model, whose runner is there.
SchedulerConfig scheduler_config(LoadedModel& loaded);

class StreamAnswer {
 public:
  // `tokenizer` may be null: ids only, no text. `show_special`: special tokens are part of the text. A prompt that
  // fills the context slides at once, where the options say so.
  StreamAnswer(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, AnswerConfig config,
               std::vector<uint32_t> prompt, GenerateOptions options, bool show_special = false);

  // The known tokens of an answer whose device was lost: call it before the first next_request(), which goes on after
  // them. result() has them and their text.
  void go_on_behind(std::span<const uint32_t> generated);
  // The request to submit: at the beginning, and when take() says so. `request`: everything but tokens and settings.
  // Errors: an option out of its range.
  Result<Request> next_request(Request request) const;

  struct Taken {
    std::string text;
    bool slid = false;  // the context was full: next_request() is to be submitted
  };
  // Before next_request(): another stream goes on from the tokens that are known.
  void begin_anew();
  // Takes what arrived of the request that was submitted last. Once it ended() a stream that has not is to be
  // cancelled.
  Result<Taken> take(const Arrived& arrived);

  bool ended() const { return answer_.ended(); }
  const Generation& result() const { return answer_.result(); }
  const GenerateOptions& options() const { return options_; }
  const std::vector<uint32_t>& sequence() const { return sequence_; }

 private:
  bool slide();

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  AnswerConfig config_;
  GenerateOptions options_;
  std::vector<uint32_t> sequence_;  // prompt and what was generated
  Answer answer_;
  uint32_t segments_ = 0;       // slides so far: varies the seed
  uint32_t segment_start_ = 0;  // tokens of the answer before this segment
  uint32_t forced_ = 0;         // tokens that were forced in it
  uint32_t preemptions_ = 0;    // times that it was preempted
  model::DraftTally drafts_;    // likewise
  std::chrono::steady_clock::time_point started_, first_token_at_;
};

}  // namespace doppler::engine
