// Many generations at once over one model: requests go in, streams of text come out. Sequences that are decoded
// together share the reading of the weights, and prompts that begin alike share the evaluation of their common part.
//
//   auto model = doppler::Model::load("model.gguf", {.sequences = 16});
//   auto scheduler = model->scheduler();
//   auto stream = scheduler->submit({.prompt = "The fox and the crow"});
//   while (auto piece = stream->next(); piece && *piece) print(**piece);
//   auto answer = stream->finish();
//
// A Scheduler and its streams may be used from any threads; a Stream by one at a time. The GPU's work goes on in a
// thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "doppler/doppler.h"

namespace doppler {

struct Request {
  // Text, token ids, or a conversation for the model's chat template.
  std::variant<std::string, std::vector<int32_t>, std::vector<Message>> prompt;
  // The pictures of a prompt of token ids, in order; the ids have their tokens in full. A message has its own.
  std::vector<std::shared_ptr<const Image>> images = {};
  GenerateOptions options = {};
  uint64_t client = 0;          // who asks: clients of one priority get equal shares
  int32_t priority = 0;         // 0 to 7; higher ones begin earlier, in the slot of a lower one if need be
  double deadline_seconds = 0;  // to begin within; then it ends with an error. 0: none
  bool show_special = false;    // special tokens are part of the text, as those that open a tool call
  // false: the request does not use what earlier requests evaluated, nor do later ones use its own; forks share it.
  bool cache_prompt = true;
  // Called by the engine's thread when try_next() has news, perhaps after the stream's end; must return soon. Forks
  // have it. With it submit() and cancel() do not wait: the stream reports an impossible request.
  std::function<void()> on_news = {};
};

// The result of try_next().
struct StreamPiece {
  std::string text;
  bool accepted = false;  // the request waits or runs; an impossible request would have failed before
  bool ended = false;     // no text comes after this one
  bool has_more = false;  // more text is there: this piece reached GenerateOptions::batch tokens
};

class Stream {
 public:
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();  // cancels what has not ended

  // Waits for more text, which may be empty while a character or a possible stop string is incomplete. No value: the
  // generation has ended.
  Result<std::optional<std::string>> next();
  // The result of next() so far.
  const Generation& so_far() const;
  // The text since the last call, without waiting.
  Result<StreamPiece> try_next();
  // The whole answer; waits for its end.
  Result<Generation> finish();
  // From any thread: the stream ends at once, with StopReason::kCancelled.
  void cancel();

  struct Impl;

 private:
  friend class Scheduler;
  friend class Session;
  explicit Stream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// One of the devices that the model was loaded on.
struct DeviceLoad {
  std::string name;
  uint32_t running = 0, waiting = 0;     // streams that it was given
  uint32_t free_blocks = 0, blocks = 0;  // of its cache
  bool is_lost = false;                  // it failed: its streams went to the other devices
};

// The present load of a scheduler, over all its devices.
struct SchedulerLoad {
  uint32_t running = 0, waiting = 0;     // streams
  uint32_t free_blocks = 0, blocks = 0;  // of the cache
  uint32_t block_len = 0;                // tokens of a block
  uint64_t host_cache_bytes = 0;         // of prefixes that left the GPU's memory
  uint64_t objects_created = 0;          // on the GPU since the model was loaded: stays 0
  std::vector<DeviceLoad> devices = {};
};

class Scheduler {
 public:
  Scheduler(Scheduler&&) noexcept;
  Scheduler& operator=(Scheduler&&) noexcept;
  ~Scheduler();

  // Errors: impossible requests (empty prompt, a prompt longer than the context, options out of range, a full queue).
  // The stream reports later errors.
  Result<Stream> submit(Request request);
  // A stream that goes on from the text that was read of `parent`: n answers of one prompt, whose evaluation they
  // share. It has the parent's client and priority, and no deadline.
  Result<Stream> fork(const Stream& parent, const GenerateOptions& options);
  SchedulerLoad load() const;

  struct Impl;

 private:
  friend class Model;
  explicit Scheduler(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace doppler
