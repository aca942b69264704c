// The one model of an instance of the module: opened, loaded and run as coroutines over the engine, asked in
// JSON and answering in JSON. web_main.cpp exports it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "doppler/doppler.h"
#include "engine/loaded_model.h"

namespace doppler::web {

// Tokens of the answer as they come, and the text that is certain with them.
using PieceCallback = std::function<void(std::span<const int32_t> tokens, const std::string& text)>;

class WebModel {
 public:
  // request: {"files": {...}, "options": {...}}. Answers with the model's description.
  Task<Result<Json>> load(Json request, model::LoadProgress progress);
  // request: {"tokens", "options", "generated"}; the last, where the device was lost: the answer's tokens so far, whose
  // text is the first piece. Answers as `doppler run --json` prints.
  Task<Result<Json>> generate(Json request, PieceCallback on_piece);
  // request: {"tokens", "dimensions", "truncate"}. The vector of a text, of a model that gives embeddings.
  Task<Result<Embedding>> embed(Json request);
  // {"text", "addSpecial", "parseSpecial"} or {"messages"} -> {"tokens"}; {"tokens"} -> {"text"}.
  Result<Json> tokenize(const Json& request) const;
  Result<Json> detokenize(const Json& request) const;
  // {"messages", "addGenerationPrompt"} -> {"text"}, by the model's chat template.
  Result<Json> apply_template(const Json& request) const;
  // Kernels in use and the better ones that were refused: {"kernels": [{"operation", "shape", "variant", "refused", "others"}]};
  // others: that could be used too, in the table's order.
  Result<Json> kernels() const;
  // A session file (engine/session_file.h) of these tokens, with as much of the cache as belongs to them; and back, which
  // answers {"tokens"}.
  Task<Result<std::vector<uint8_t>>> save(Json request);
  Task<Result<Json>> restore(std::vector<uint8_t> bytes);
  void cancel() { cancelled_.store(true); }

 private:
  Result<const tokenizer::Tokenizer*> tokenizer() const;
  Result<void> check_idle() const;

  std::unique_ptr<gpu::Device> device_;  // outlives what is loaded on it
  std::unique_ptr<engine::LoadedModel> loaded_;
  std::vector<uint32_t> cached_tokens_;  // tokens in the cache
  bool generating_ = false;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace doppler::web
