// The generate loop: feeds a prompt in chunks, keeps decode submits in flight, and turns the tokens that come back
// into text. It never waits for a token before queueing the next batch. Works on any StepRunner.
// Read next: session_file.h (saving), loaded_model.h (where runner and tokenizer come from).
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "base/task.h"
#include "doppler/doppler.h"
#include "engine/answer.h"
#include "engine/generation_settings.h"
#include "model/step_runner.h"
#include "tokenizer/tokenizer.h"

namespace doppler::engine {

// One generation. Step by step: start(), then next() until it gives nothing, then result().
class Generator {
 public:
  // `cached_tokens`: tokens whose keys and values are in the runner's cache; the generator keeps the list up to date.
  // `tokenizer` may be null: ids only, no text. All must outlive the generator.
  Generator(model::StepRunner& runner, const tokenizer::Tokenizer* tokenizer, GeneratorConfig config,
            std::vector<uint32_t>& cached_tokens, const std::atomic<bool>& cancelled);

  // Queues the prompt (the whole sequence so far) and the first decode steps. `generated`: tokens of the answer that are
  // known, of a generation whose device was lost; it goes on behind them, and result() has them, but next() does not give
  // their text again. Errors: empty prompt, token out of range, prompt longer than the context, options out of range.
  Result<void> start(std::vector<uint32_t> prompt, GenerateOptions options,
                     std::span<const uint32_t> generated = {});
  // Waits for the next batch of tokens and gives their text, which may be empty while a character or a possible stop
  // string is incomplete. No value: the generation has ended.
  Task<Result<std::optional<std::string>>> next();
  // The caller wants no more tokens: the generation ends.
  void stop() { caller_stopped_ = true; }
  const Generation& result() const { return answer_->result(); }

 private:
  Result<void> begin_segment();
  Result<void> queue_prompt();
  Task<Result<void>> prepare();
  Result<void> feed();
  Result<void> note_chunk();
  Result<void> queue_decode(size_t ahead);
  void note_drafts(const model::Ticket& ticket, uint32_t tokens, double taken);
  Result<std::string> accept(std::span<const uint32_t> tokens,
                             std::span<const kernels::LogProbEntry> logprobs);
  Result<bool> slide();
  Task<Result<void>> drain(bool lost = false);
  Task<Result<std::optional<std::string>>> step();

  model::StepRunner& runner_;
  const tokenizer::Tokenizer* tokenizer_;
  GeneratorConfig config_;
  std::vector<uint32_t>& cached_tokens_;
  const std::atomic<bool>& cancelled_;

  GenerateOptions options_;
  std::vector<uint32_t> sequence_;  // prompt and what was generated
  std::deque<model::Ticket> in_flight_;
  size_t fed_ = 0;                  // tokens of sequence_ that are queued or cached, while a prompt is fed
  uint32_t rows_ = 0, chunks_ = 0;  // of a chunk of the prompt, at most; chunks in flight, at most
  std::chrono::steady_clock::time_point chunk_done_at_;  // the last one, or the start
  uint32_t scheduled_ = 0;                               // tokens asked of the runner since the last begin()
  uint32_t seen_ = 0;                                    // tokens read back, of those scheduled
  uint32_t limit_ = 0;                                   // generated tokens in all
  uint32_t segment_limit_ = 0;                           // generated tokens since the last begin()
  uint32_t segments_ = 0;                                // slides so far: varies the seed
  uint32_t segment_start_ = 0;                           // generated tokens before this segment
  model::GenerationSettings settings_;                   // of this segment
  bool is_waiting_ = false;                              // for plans that nobody needed before
  bool caller_stopped_ = false;
  bool exhausted_ = false;        // the context is full: tickets in flight hold no more tokens
  std::optional<Answer> answer_;  // once started
  DraftPolicy draft_policy_;
  model::DraftCounts drafts_before_;  // the runner's, when this generation started
  std::chrono::steady_clock::time_point started_, first_token_at_, last_token_at_;
};

}  // namespace doppler::engine
