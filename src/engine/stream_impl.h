// The contents of Stream and Scheduler in the public API (include/doppler/scheduler.h); sessions of a model with
// several sequences read their streams too.
#pragma once

#include <memory>
#include <vector>

#include "doppler/scheduler.h"
#include "engine/api_impl.h"
#include "engine/scheduler_driver_native.h"
#include "engine/stream_answer.h"

namespace doppler {

struct Stream::Impl {
  // The caller's way of reading, from doppler::Request.
  struct Reading {
    bool show_special = false;
    std::function<void()> on_news;
  };

  // Begins a stream for these tokens; `parent`, if any, is the line of one whose text begins with them.
  static Result<std::unique_ptr<Impl>> begin(std::shared_ptr<Model::Impl> model, std::vector<uint32_t> tokens,
                                             GenerateOptions options, engine::Request request,
                                             Reading reading,
                                             std::shared_ptr<engine::StreamLine> parent = nullptr);
  Impl(std::shared_ptr<Model::Impl> owner, std::vector<uint32_t> tokens, GenerateOptions chosen,
       engine::Request asked, Reading reading);
  ~Impl();

  // `cancelled`, if it is not null, ends the stream when it is set.
  Result<std::optional<std::string>> next(const std::atomic<bool>* cancelled = nullptr);
  Result<StreamPiece> try_next();
  Result<Generation> finish();
  void cancel();

  // Begins, or begins again where a full context slid.
  Result<void> submit(std::shared_ptr<engine::StreamLine> parent);
  // The text of what arrived on the line `of`.
  Result<std::string> accept(const std::shared_ptr<engine::StreamLine>& of, const engine::Arrived& arrived);
  // Goes on from the tokens that are known, since its device was lost and another one is there.
  Result<void> move_on(const Error& loss);
  // True if the model was loaded again since: then no more tokens come.
  bool is_of_lost_device() const { return reloads != model->reloads; }
  std::shared_ptr<engine::StreamLine> line_now();
  void cancel_line(const std::shared_ptr<engine::StreamLine>& of);

  std::shared_ptr<Model::Impl> model;
  engine::Request request;  // all but its tokens and settings
  Reading reading;
  engine::StreamAnswer answer;
  bool line_ended = false;
  uint32_t reloads = 0;        // the model's, when it was submitted
  bool was_cancelled = false;  // under mutex
  std::mutex mutex;            // of line and was_cancelled: cancel() comes from any thread
  std::shared_ptr<engine::StreamLine> line;
};

struct Scheduler::Impl {
  std::shared_ptr<Model::Impl> model;
};

}  // namespace doppler
