// Grammars of a model's generations: a guide of the scheduler over a matcher of src/guidance.
#pragma once

#include <memory>
#include <mutex>

#include "engine/loaded_model.h"
#include "engine/scheduler/guide.h"
#include "guidance/guides.h"

namespace doppler::engine {

class ModelGuides {
 public:
  explicit ModelGuides(const TextModel& text) : tokenizer_(text.tokenizer), ends_(text.stop_tokens) {}
  // At the beginning of an answer. The first grammar opens the library and tells it the vocabulary. Any thread.
  Result<std::shared_ptr<Guide>> begin(const Grammar& grammar);

 private:
  Result<guidance::Guides*> guides();

  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  const std::vector<uint32_t> ends_;
  std::mutex mutex_;
  std::unique_ptr<guidance::Guides> guides_;
};

}  // namespace doppler::engine
