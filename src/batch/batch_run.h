// The work of `doppler batch` and of the server's /v1/batches: it reads lines of requests and writes lines of answers,
// in the order in which they finish. The scheduler may get several times as many requests as the model has places, so
// that no place waits for the next one; no other lines of the files are in memory.
// Read next: openai/batch_line.h (the lines), openai/batch_output.h (what is done already).
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "doppler/scheduler.h"
#include "openai/batch_output.h"
#include "openai/formats/chat_prompt.h"
#include "openai/line_reader.h"
#include "openai/token_probs.h"

namespace doppler::batch {

struct BatchTotals {
  uint64_t lines = 0;   // of the input
  uint64_t before = 0;  // lines that an earlier run answered
  uint64_t answered = 0, failed = 0;
  uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double seconds = 0;
  uint64_t left() const { return lines - before - answered - failed; }
  double rate() const { return seconds > 0 ? static_cast<double>(generated_tokens) / seconds : 0; }
};

// A chat as the model gets it.
struct ChatStart {
  openai::ChatPrompt prompt;
  std::vector<int32_t> tokens;
  std::vector<std::shared_ptr<const Image>> images;  // whose tokens these have
};
using StartChat = std::function<Result<ChatStart>(const openai::ChatFields&, const Grammar&)>;

struct BatchSettings {
  GenerateOptions defaults;  // if a body does not say
  uint32_t in_flight = 1;    // requests that the scheduler has at a time
  std::string model;         // its name in the answers
  StartChat start_chat;      // called by several threads
  openai::TokenText token_text;
  bool token_ids = false;  // answers have the ids of their tokens
  uint64_t client = 0;     // of the scheduler's clients
  // Error: a readable line does not belong here; the error becomes its answer.
  std::function<Result<void>(const openai::BatchLine&)> check = {};
  // Called some times a second by run(). False: nothing new is begun, what is under way ends without a line.
  std::function<bool(const BatchTotals&)> on_tick = {};
};

class BatchRun {
 public:
  // All must outlive it. `lines`: of the input.
  BatchRun(Scheduler& scheduler, openai::LineReader& input, openai::BatchOutput& output,
           BatchSettings settings, uint64_t lines);

  // Runs until the input is at its end, or on_tick() ends it. Errors: the device and the files. A request that cannot
  // be answered is no error: its line in the output says why.
  Result<BatchTotals> run();

 private:
  void work();
  std::optional<openai::BatchLine> next_line();
  Result<std::optional<openai::BatchLine>> read_line();
  void answer(const openai::BatchLine& line);
  Result<std::vector<Stream>> submit(const openai::CompletionRequest& completion, ChatStart& chat);
  Result<std::vector<Generation>> read(std::vector<Stream>& streams);
  Result<std::vector<Generation>> generate(const openai::BatchLine& line, ChatStart& chat);
  void finish_line(const openai::BatchLine& line, const openai::ChatPrompt& prompt,
                   const Result<std::vector<Generation>>& choices);
  void stop();
  void stop(Error error);

  Scheduler& scheduler_;
  openai::LineReader& input_;
  openai::BatchOutput& output_;
  BatchSettings settings_;
  std::mutex mutex_;  // of all below
  std::condition_variable worker_ended_;
  BatchTotals totals_;
  std::set<Stream*> streams_;  // that are read now
  uint32_t working_ = 0;
  bool stopping_ = false;
  std::optional<Error> error_;
};

}  // namespace doppler::batch
