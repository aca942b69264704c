// Generations of a model: the engine's scheduler, whose turns run on the browser's one thread for as long as there is
// work. Natively scheduler_driver_native.h does this.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "engine/stream_answer.h"

namespace doppler::web {

// Tokens of an answer as they come, and the text that is certain with them.
using PieceCallback = std::function<void(std::span<const int32_t> tokens, const std::string& text)>;

class WebStreams {
 public:
  // `loaded`, a model that writes text, must outlive it.
  static Result<std::unique_ptr<WebStreams>> create(engine::LoadedModel& loaded);

  struct Asked {
    uint32_t call = 0;  // names it for cancel()
    std::vector<uint32_t> prompt;
    std::vector<uint32_t> generated;  // of one whose device was lost: the answer's tokens so far
    GenerateOptions options;
    bool show_special = false;  // special tokens are part of the text
    std::shared_ptr<engine::Guide> guide = nullptr;
    std::vector<std::shared_ptr<const model::HeldImage>> images = {};  // whose tokens the prompt has
    // Those that options.adapters name. Null: none.
    std::shared_ptr<const model::AdapterMix> adapters = nullptr;
  };
  Task<Result<Generation>> generate(Asked asked, PieceCallback on_piece);
  // The generation of that call, if there is one, ends with what it has.
  void cancel(uint32_t call);
  bool is_idle() const { return lines_.empty(); }
  // Only while it is idle. A runner that holds its text saves the cache of a beginning of `tokens`, and restores it.
  // For another runner both do nothing: its prefix cache decides what it keeps.
  Task<Result<std::vector<uint8_t>>> save(std::span<const uint32_t> tokens);
  Task<Result<void>> restore(std::span<const uint32_t> tokens, std::span<const uint8_t> bytes);

 private:
  struct Line {
    uint32_t call;
    engine::StreamAnswer answer;
    std::shared_ptr<engine::Guide> guide;
    std::vector<std::shared_ptr<const model::HeldImage>> images;
    std::shared_ptr<const model::AdapterMix> adapters;
    PieceCallback on_piece;
    std::shared_ptr<engine::Stream> stream;
    Completion<Result<void>> ended;
  };
  explicit WebStreams(engine::LoadedModel& loaded) : loaded_(loaded), runner_(*loaded.runner->runner()) {}
  Task<Result<void>> settle();
  Result<void> submit(Line& line);
  Task<bool> run();
  void deliver();
  Result<bool> deliver(Line& line);  // true: the answer has ended

  const engine::LoadedModel& loaded_;
  model::SequenceRunner& runner_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::list<std::shared_ptr<Line>> lines_;
  Task<bool> running_;  // last: it uses the others
};

}  // namespace doppler::web
