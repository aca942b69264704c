// What Model and Session hold behind the public API. The command line and the tools that look deeper read it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "doppler/scheduler.h"
#include "engine/generator.h"
#include "engine/loaded_model.h"

namespace doppler {

namespace engine {
class ModelGuides;
class SchedulerThread;
}  // namespace engine

struct Model::Impl {
  std::unique_ptr<gpu::Device> device;  // outlives what is loaded on it
  std::unique_ptr<engine::LoadedModel> loaded;
  ModelInfo info;
  std::vector<uint32_t> cached_tokens;          // tokens in the cache of a model for one sequence
  std::shared_ptr<engine::ModelGuides> guides;  // of a model for several sequences
  // Of a model for one sequence, and from a path: opens device and files again, where the device was lost.
  std::function<Result<void>(Impl&)> reload;
  uint32_t reloads = 0;
  // Of a model for several: it owns the device. Last, since it uses the others.
  std::unique_ptr<engine::SchedulerThread> thread;

  ~Impl();
  Result<void> check_loaded() const;  // error: it could not be loaded again
  // For good: a lost device stays in error, any other error is told once.
  bool is_device_lost() const { return device && !device->status() && !device->status(); }
  Result<const tokenizer::Tokenizer*> tokenizer() const;
  // Error: an id is negative.
  static Result<std::vector<uint32_t>> checked_ids(std::span<const int32_t> ids);
  static Model wrap(std::shared_ptr<Impl> impl) { return Model(std::move(impl)); }
};

struct Session::Impl {
  explicit Impl(std::shared_ptr<Model::Impl> owner);
  ~Impl();

  Result<void> start_ids(std::span<const int32_t> ids, const GenerateOptions& options);
  Result<void> start_chat(std::span<const Message> conversation, const GenerateOptions& options);
  Result<std::optional<std::string>> next();
  Result<Generation> finish();
  Result<Generation> run(const TextCallback& on_text);
  void cancel();

  std::shared_ptr<Model::Impl> model;
  std::vector<uint32_t> sequence;  // the text so far
  std::vector<Message> messages;   // the conversation that it is; empty if it is plain text
  bool is_generating() const;
  Result<void> begin(std::vector<uint32_t> prompt, const GenerateOptions& options);
  void forget();
  Result<void> begin_generator(std::span<const uint32_t> generated);
  Result<void> open_again(const Error& loss);
  Result<std::string> go_on_after_loss(const Error& loss);
  Result<std::optional<std::string>> next_of_generator();
  bool is_reloaded() const { return reloads != model->reloads; }
  const Generation& result() const;
  void stop();

  std::optional<engine::Generator> generator;  // of a model for one sequence
  // What it was begun with, to begin it again where the device is lost.
  std::vector<uint32_t> begun_prompt;
  GenerateOptions begun_options;
  size_t told_bytes = 0;  // of the answer's text
  uint32_t reloads = 0;   // the model's, when it was begun
  uint32_t losses = 0;    // in this generation
  // Of a model for several. Atomic, since cancel() comes from any thread.
  std::atomic<std::shared_ptr<Stream::Impl>> stream;
  std::atomic<bool> cancelled = false;
};

// What a tool may ask for besides LoadOptions: plans that give all logits (and hidden states) instead of
// text.
struct LoadExtras {
  bool all_logits = false;
  bool hidden = false;
};
// Model::load for files that have no path (synthetic weights), and for tools.
Result<Model> load_files(std::unique_ptr<formats::FileSet> files, const LoadOptions& options,
                         LoadExtras extras = {});

// Error: a role that no model knows.
Result<Json> messages_json(std::span<const Message> messages);

// Writes beside the target and renames, so that an interrupted write leaves the old file.
Result<void> write_file_atomically(const std::string& path, std::span<const uint8_t> bytes);

}  // namespace doppler
