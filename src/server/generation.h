// One request's generations on their model's thread: prompt to tokens, tokens to streams of the scheduler, their text
// to events, events to the bytes of an API. Nothing here waits: streams tell when they have news.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "openai/answer_writer.h"
#include "openai/served_request.h"
#include "server/exchange.h"
#include "server/model_host.h"

namespace doppler::server {

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // `error_body` writes an error in the API's form, instead of an answer. The code may be null.
  using ErrorBody = std::function<std::string(const Error&, const char* code)>;
  Generation(std::shared_ptr<Exchange> exchange, openai::ServedRequest request,
             std::unique_ptr<openai::AnswerWriter> writer, ModelHost& host, ErrorBody error_body);

  // On the model's thread. Null and an error: the model could not be loaded.
  void begin(ReadyModel* model, const Error* error);

 private:
  Result<void> bring_adapters(ReadyModel& model);
  Result<void> submit(ReadyModel& model);
  Result<void> submit_prompt(ReadyModel& model, std::vector<int32_t> ids, Request request);
  void pull();
  bool pull_choice(uint32_t index);
  bool are_accepted();
  void begin_answer();
  void emit(uint32_t choice, std::vector<openai::AnswerEvent> events);
  void tell_progress(uint32_t choice);
  void finish_choice(uint32_t choice);
  void finish();
  void fail_with(const Error& error);
  void abort();
  void end(const char* finish);
  std::function<void()> news();

  struct Choice {
    std::optional<Stream> stream;  // none: it has ended
    openai::OutputParser parser = {};
    std::vector<openai::AnswerEvent> forced = {};  // told before the first piece
    bool is_accepted = false;                      // by the scheduler
    std::optional<StreamPiece> first = {};         // the piece that said so
  };

  const std::shared_ptr<Exchange> exchange_;
  openai::ServedRequest request_;
  const std::unique_ptr<openai::AnswerWriter> writer_;
  std::unique_ptr<ModelHost::Use> use_;
  const ErrorBody error_body_;
  const char* error_code_ = nullptr;  // of an error that submit() gives
  openai::TokenText token_text_;
  openai::AnswerHead head_;
  std::vector<std::string> echoes_;  // the prompts' texts
  std::vector<Choice> choices_;
  std::vector<openai::ChoiceAnswer> answers_;
  openai::Usage usage_;
  std::chrono::steady_clock::time_point begun_at_;
  size_t live_ = 0;
  bool has_begun_ = false, has_ended_ = false;
};

}  // namespace doppler::server
