// The contents of Model and Session in the public API. The command line and the tools that look deeper read them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "doppler/scheduler.h"
#include "engine/image_prompt.h"
#include "engine/loaded_model.h"
#include "model/image_numbers.h"

namespace doppler {

namespace engine {
class AdapterRegistry;
class Dispatcher;
class ModelGuides;
class SchedulerDriver;
struct Request;

// A device with the model on it.
struct Card {
  Card();
  ~Card();
  std::unique_ptr<gpu::Device> device;  // outlives what is loaded on it
  std::unique_ptr<LoadedModel> loaded;
  // Null: the model was loaded for embeddings or logits. Last, since it uses the others.
  std::unique_ptr<SchedulerDriver> driver;
};
}  // namespace engine

// Itself the first card. Embeddings, scores and logits, which need no scheduler, are made there. If the layers lie on
// several devices, it is the card of the last ones.
struct Model::Impl : engine::Card {
  // On further devices: the model again, or the layers before, in their order.
  std::vector<std::unique_ptr<engine::Card>> others;
  std::unique_ptr<model::SequenceRunner> split;  // the steps of all layers, if they lie on several devices
  ModelInfo info;
  std::shared_ptr<engine::ModelGuides> guides;
  std::shared_ptr<engine::AdapterRegistry> adapters;  // by name; they stay if the model is loaded again
  // From a path: opens device and files again, where the device was lost. Not once a thread runs the scheduler.
  std::function<Result<void>(Impl&)> reload;
  uint32_t reloads = 0;
  // The numbers of all pictures that the model was shown; they hold on every card, and if it is loaded again.
  std::optional<model::ImageNumbers> image_numbers;
  std::mutex image_mutex;                          // of image_numbers
  std::unique_ptr<engine::Dispatcher> dispatcher;  // over the drivers of all cards, null without them

  ~Impl();
  void unload();                         // all cards
  Result<void> check_loaded() const;     // error: it could not be loaded again
  Result<void> check_generates() const;  // error: or it writes no text
  // For good: a lost device stays in error, any other error is told once.
  bool is_device_lost() const;
  Result<const tokenizer::Tokenizer*> tokenizer() const;
  // Gives a request the adapters that these options name.
  Result<void> choose_adapters(const GenerateOptions& options, engine::Request& request) const;
  // The prompt of a conversation, and its pictures.
  struct Prompt {
    std::vector<uint32_t> tokens;
    engine::HeldImages images;
  };
  Result<Prompt> chat_prompt(std::span<const Message> messages);
  // The prompt of ids that have the pictures' tokens in full. Errors: the model reads no pictures, or their tokens do
  // not fit the ids.
  Result<Prompt> image_prompt(std::vector<uint32_t> tokens,
                              std::span<const std::shared_ptr<const Image>> images);
  // Error: an id is negative.
  static Result<std::vector<uint32_t>> checked_ids(std::span<const int32_t> ids);
  static Impl& of(Model& model) { return *model.impl_; }
  static Model wrap(std::shared_ptr<Impl> impl) { return Model(std::move(impl)); }
};

struct Session::Impl {
  explicit Impl(std::shared_ptr<Model::Impl> owner);
  ~Impl();

  Result<void> start_ids(std::span<const int32_t> ids, const GenerateOptions& options);
  Result<void> start_tokens(std::span<const uint32_t> added, const GenerateOptions& options);
  Result<void> start_chat(std::span<const Message> conversation, const GenerateOptions& options);
  Result<std::optional<std::string>> next();
  Result<Generation> finish();
  Result<Generation> run(const TextCallback& on_text);
  void cancel();

  std::shared_ptr<Model::Impl> model;
  std::vector<uint32_t> sequence;  // the text so far
  std::vector<Message> messages;   // the conversation that it is; empty if it is plain text
  engine::HeldImages images;       // that it has
  bool is_generating() const { return stream.load() != nullptr; }
  Result<void> begin(const std::vector<uint32_t>& prompt, const GenerateOptions& options);
  void stop();
  Result<void> open_again(const Error& loss);
  Result<void> go_on_after_loss(const Error& loss);

  std::atomic<std::shared_ptr<Stream::Impl>> stream;  // atomic, since cancel() comes from any thread
  uint32_t losses = 0;                                // of the device, in this generation
  std::atomic<bool> cancelled = false;
};

// A tool may ask for these besides LoadOptions: plans that give all logits (and hidden states) instead of text.
struct LoadExtras {
  bool all_logits = false;
  bool hidden = false;
};
// Model::load for files that have no path (synthetic weights), and for tools.
Result<Model> load_files(std::unique_ptr<formats::FileSet> files, const LoadOptions& options,
                         LoadExtras extras = {});

// A rendered prompt whose marks of pictures are expanded. Errors: the model reads no pictures, or the prompt
// has more or fewer marks than pictures.
Result<std::string> expand_pictures(const engine::TextModel& model, std::string_view text,
                                    std::span<const std::shared_ptr<const Image>> pictures);

// Error: a role that no model knows.
Result<Json> messages_json(std::span<const Message> messages);

// Writes beside the target and renames, so that an interrupted write leaves the old file.
Result<void> write_file_atomically(const std::string& path, std::span<const uint8_t> bytes);

}  // namespace doppler
