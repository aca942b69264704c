// The one model of an instance of the module: opened, loaded and run as coroutines over the engine, asked in
// JSON and answering in JSON. web_main.cpp exports it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/loaded_model.h"

namespace doppler::web {

class WebModel {
 public:
  // request: {"files": {...}, "options": {...}}. Answers with the model's description.
  Task<Result<Json>> load(Json request, model::LoadProgress progress);
  // request: {"tokens" or "messages" or "prompt", "options"}. Answers as `doppler run --json` prints.
  Task<Result<Json>> generate(Json request, std::function<void(const std::string&)> on_text);
  // {"text", "addSpecial", "parseSpecial"} -> {"tokens"}; {"tokens"} -> {"text"}.
  Result<Json> tokenize(const Json& request) const;
  Result<Json> detokenize(const Json& request) const;
  void cancel() { cancelled_.store(true); }

 private:
  Result<const tokenizer::Tokenizer*> tokenizer() const;
  Result<std::vector<int32_t>> prompt_tokens(const Json& request, bool add_special) const;

  std::unique_ptr<gpu::Device> device_;  // outlives what is loaded on it
  std::unique_ptr<engine::LoadedModel> loaded_;
  std::vector<uint32_t> cached_tokens_;  // tokens in the cache
  bool generating_ = false;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace doppler::web
