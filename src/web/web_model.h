// The one model of an instance of the module: opened, loaded and run as coroutines over the engine, asked in
// JSON and answering in JSON. web_main.cpp exports it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "doppler/doppler.h"
#include "engine/loaded_model.h"
#include "engine/named_adapters.h"
#include "web/web_pictures.h"
#include "web/web_streams.h"

namespace doppler::web {

class WebModel {
 public:
  // request: {"files": {...}, "options": {...}, "adapters": web_adapters.h}. Answers with the model's description.
  Task<Result<Json>> load(Json request, model::LoadProgress progress);
  // request: {"tokens", "options", "reading", "generated"}. reading: of a chat, whose pieces are then lists of events
  // (web_chat.h). grammar: the host's number of one (web_guide.h). generated: after a lost device, the answer's tokens
  // so far, whose text is the first piece. Answers as `doppler run --json` prints. More than the model was loaded for
  // wait for each other. `call` names it for cancel().
  Task<Result<Json>> generate(uint32_t call, Json request, PieceCallback on_piece);
  // request: {"tokens", "dimensions", "truncate"}. The vector of a text, of a model that gives embeddings.
  Task<Result<Embedding>> embed(Json request);
  // {"query", "text"} -> {"score", "tokens"}, of a model with a head of classes. score: 0 to 1.
  Task<Result<Json>> rerank(Json request);
  // Adapters that answers ask for by name. {"load": {"files", "name", "scale"}} or {"unload": name} or neither ->
  // {"adapters": [{"name", "path", "rank", "scale"}]}. Answers under way keep an adapter that is unloaded.
  Task<Result<Json>> change_adapters(Json request);
  // Begins a chat, or only reads its grammar: web_chat.h. {"chat", "hasGrammars"} -> {"tokens", "reading", "grammar"}
  Result<Json> begin_chat(const Json& request) const;
  // As WebPictures::add().
  Result<Json> add_picture(std::span<const uint8_t> bytes);
  // {"fields", "hasGrammars"} -> {"kind", "text", "source"}
  Result<Json> read_grammar(const Json& request) const;
  // The spelling of each token, as its count of bytes (u16) and the bytes: 0 for tokens that stand for no text. The
  // second list has the tokens that end an answer.
  Result<std::pair<std::vector<uint8_t>, std::vector<uint32_t>>> vocabulary() const;
  // {"text", "addSpecial", "parseSpecial"} -> {"tokens"}; {"tokens"} -> {"text"}.
  Result<Json> tokenize(const Json& request) const;
  Result<Json> detokenize(const Json& request) const;
  // {"messages", "addGenerationPrompt"} -> {"text"}, by the model's chat template.
  Result<Json> apply_template(const Json& request) const;
  // Kernels in use and the better ones that were refused: {"kernels": [{"operation", "shape", "variant", "refused",
  // "others"}]}; others: those that could be used too, in the table's order.
  Result<Json> kernels() const;
  // Makes a session file (engine/session_file.h) with these tokens, with the part of the cache that belongs to them;
  // restore() reads it back and answers {"tokens"}.
  Task<Result<std::vector<uint8_t>>> save(Json request);
  Task<Result<Json>> restore(std::vector<uint8_t> bytes);
  void cancel(uint32_t call);

 private:
  Result<const tokenizer::Tokenizer*> tokenizer() const;
  Result<void> check_idle() const;
  Result<void> check_generates() const;  // error: no model is loaded, or it writes no text

  std::unique_ptr<gpu::Device> device_;  // outlives what is loaded on it
  std::unique_ptr<engine::LoadedModel> loaded_;
  engine::NamedAdapters adapters_;
  std::unique_ptr<WebPictures> pictures_;
  std::unique_ptr<WebStreams> streams_;  // null: the model writes no text. Last, since it uses the others
};

}  // namespace doppler::web
