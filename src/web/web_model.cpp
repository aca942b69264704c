#include "web/web_model.h"

#include <algorithm>

#include "engine/generation_json.h"
#include "engine/model_options.h"
#include "engine/session_file.h"
#include "engine/session_identity.h"
#include "engine/tuning.h"
#include "web/web_adapters.h"
#include "web/web_chat.h"
#include "web/web_guide.h"
#include "web/web_options.h"

namespace doppler::web {
namespace {

Json member(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  return value ? *value : Json::object();
}

}  // namespace

Task<Result<Json>> WebModel::load(Json request, model::LoadProgress progress) {
  if (device_) co_return fail(ErrorKind::kInternal, "A model was loaded already; one instance holds one.");
  DP_CO_TRY(WebFiles files, read_files(member(request, "files")));
  DP_CO_TRY(const LoadOptions options, read_load_options(member(request, "options")));
  DP_CO_TRY(model::RunnerOptions runner, engine::runner_options(options));
  auto opening = gpu::Device::open({});
  DP_CO_TRY(device_, co_await std::move(opening));
  std::unique_ptr<formats::FileSet> projector;
  if (!options.mmproj.empty()) {
    WebFiles beside = files;
    beside.root = beside.main_file = options.mmproj;
    projector = make_web_file_set(std::move(beside));
  }
  engine::AdapterSources adapters;
  if (const Json* given = find(request, "adapters")) {
    DP_CO_TRY(adapters, read_adapter_sources(*given));
  }
  auto loading = engine::load_model(*device_, make_web_file_set(std::move(files)), std::move(runner),
                                    options.chat_template, std::move(progress), {}, std::move(adapters),
                                    std::move(projector));
  auto loaded = co_await std::move(loading);
  if (!loaded) {
    device_.reset();
    co_return forward(std::move(loaded).error());
  }
  loaded_ = std::move(*loaded);
  for (engine::NamedAdapter& named : loaded_->named_adapters) adapters_.add(std::move(named));
  pictures_ = std::make_unique<WebPictures>(*loaded_);
  if (loaded_->runner->runner()) {
    DP_CO_TRY(streams_, WebStreams::create(*loaded_));
  }
  const ModelInfo info = engine::describe(*loaded_, *device_);
  Json variants = Json::array();
  for (const kernels::Choice& choice : loaded_->runner->choices()) variants.push_back(choice.variant);
  co_return Json({{"name", info.name},
                  {"architecture", info.architecture},
                  {"synthetic", info.synthetic},
                  {"adapter", info.adapter},
                  {"provider", info.provider},
                  {"vocabSize", info.vocab_size},
                  {"ctxLen", info.ctx_len},
                  {"lane", options.lane},
                  {"sequences", options.sequences},
                  {"embeddingDim", info.embedding_dim},
                  {"givesScores", info.gives_scores},
                  {"trainedCtxLen", info.trained_ctx_len},
                  {"weightBytes", info.weight_bytes},
                  {"cacheBytes", info.cache_bytes},
                  {"scratchBytes", info.scratch_bytes},
                  {"loadSeconds", info.load.seconds},
                  {"readsImages", info.reads_images},
                  {"adapterSlots", loaded_->runner->adapters().arena().slots()},
                  {"adapterRank", loaded_->runner->adapters().arena().rank()},
                  {"hasTokenizer", info.has_tokenizer},
                  {"hasChatTemplate", info.has_chat_template},
                  {"variants", std::move(variants)}});
}

Result<const tokenizer::Tokenizer*> WebModel::tokenizer() const {
  if (!loaded_) return fail(ErrorKind::kInvalidInput, "No model is loaded.");
  if (loaded_->text.tokenizer) return loaded_->text.tokenizer.get();
  return fail(ErrorKind::kUnsupported, "The model's tokenizer cannot be used (token ids can): %s",
              loaded_->text.tokenizer_problem.c_str());
}

Result<void> WebModel::check_idle() const {
  if (!loaded_) return fail(ErrorKind::kInvalidInput, "No model is loaded.");
  if (streams_ && !streams_->is_idle())
    return fail(ErrorKind::kInvalidInput, "A generation is under way; cancel it or wait for it.");
  return {};
}

Result<void> WebModel::check_generates() const {
  if (!loaded_) return fail(ErrorKind::kInvalidInput, "No model is loaded.");
  return model::check_writes_text(loaded_->runner->config());
}

Task<Result<Json>> WebModel::generate(uint32_t call, Json request, PieceCallback on_piece) {
  DP_CO_CHECK(check_generates());
  DP_CO_TRY(GenerateOptions options, read_generate_options(member(request, "options")));
  DP_CO_TRY(const std::vector<int32_t> ids, read_tokens(request, "tokens"));
  DP_CO_TRY(const std::vector<int32_t> known, read_tokens(request, "generated"));
  WebStreams::Asked asked{.call = call,
                          .prompt = {ids.begin(), ids.end()},
                          .generated = {known.begin(), known.end()},
                          .options = std::move(options)};
  if (std::ranges::any_of(asked.prompt, model::is_image_token))
    asked.images = pictures_->named_by(asked.prompt);
  if (asked.options.adapters) {
    DP_CO_TRY(asked.adapters, adapters_.mix_of(*asked.options.adapters));
  }
  std::optional<ChatReader> reader;  // outlives what tells it pieces
  PieceCallback tell = on_piece;
  if (const Json* reading = find(request, "reading")) {
    DP_CO_TRY(reader, ChatReader::create(loaded_->text, *reading));
    asked.show_special = reader->shows_special();
    tell = [&](std::span<const int32_t> tokens, const std::string& text) {
      on_piece(tokens, reader->push(text));
    };
  }
  DP_CO_TRY(const auto grammar, get_integer(request, "grammar"));
  if (grammar) {
    asked.guide = std::make_shared<WebGuide>(static_cast<uint32_t>(*grammar),
                                             engine::answer_config(*loaded_).vocab_size);
    asked.options.grammar.kind = GrammarKind::kGrammar;  // the plans' masks are used
  }
  auto running = streams_->generate(std::move(asked), std::move(tell));
  DP_CO_TRY(const Generation made, co_await std::move(running));
  if (reader) on_piece({}, reader->finish());
  co_return engine::generation_json(engine::describe(*loaded_, *device_),
                                    engine::counters_since_load(*loaded_, *device_), made);
}

void WebModel::cancel(uint32_t call) {
  if (streams_) streams_->cancel(call);
}

Result<Json> WebModel::begin_chat(const Json& request) const {
  if (!loaded_) return fail(ErrorKind::kInvalidInput, "No model is loaded.");
  DP_TRY(const auto has_grammars, get_bool(request, "hasGrammars"));
  return web::begin_chat(loaded_->text, member(request, "chat"), has_grammars.value_or(false), *pictures_);
}

Result<Json> WebModel::add_picture(std::span<const uint8_t> bytes) {
  if (!loaded_) return fail(ErrorKind::kInvalidInput, "No model is loaded.");
  return pictures_->add(bytes);
}

Result<Json> WebModel::read_grammar(const Json& request) const {
  DP_TRY(const auto has_grammars, get_bool(request, "hasGrammars"));
  return web::read_grammar(member(request, "fields"), has_grammars.value_or(false));
}

Result<std::pair<std::vector<uint8_t>, std::vector<uint32_t>>> WebModel::vocabulary() const {
  using tokenizer::TokenType;
  DP_TRY(const tokenizer::Tokenizer* const tokenizer, this->tokenizer());
  std::vector<uint8_t> out;
  const std::vector<uint32_t>& ends = loaded_->text.stop_tokens;
  for (uint32_t id = 0; id < tokenizer->vocab_size(); ++id) {
    const TokenType type = tokenizer->token_type(static_cast<int32_t>(id));
    const bool is_text = type != TokenType::kUnused && type != TokenType::kControl &&
                         type != TokenType::kUnknown && std::ranges::find(ends, id) == ends.end();
    const std::string_view bytes = is_text ? tokenizer->token_bytes(static_cast<int32_t>(id)) : "";
    const size_t count = bytes.size() > UINT16_MAX ? 0 : bytes.size();
    out.push_back(static_cast<uint8_t>(count & 0xff));
    out.push_back(static_cast<uint8_t>(count >> 8));
    out.insert(out.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
  }
  return std::pair(std::move(out), ends);
}

Result<Json> WebModel::apply_template(const Json& request) const {
  if (!loaded_) return fail(ErrorKind::kInvalidInput, "No model is loaded.");
  const Json* messages = find(request, "messages");
  if (!messages) return fail(ErrorKind::kInvalidInput, "A chat template needs messages.");
  DP_TRY(const auto add_prompt, get_bool(request, "addGenerationPrompt"));
  DP_TRY(const std::string text,
         engine::apply_chat_template(loaded_->text, *messages, add_prompt.value_or(true)));
  return Json({{"text", text}});
}

Result<Json> WebModel::kernels() const {
  if (!loaded_) return fail(ErrorKind::kInvalidInput, "No model is loaded.");
  Json list = Json::array();
  for (const kernels::Choice& choice : loaded_->runner->choices()) {
    Json refused = Json::array();
    for (const kernels::Refusal& refusal : choice.refused)
      refused.push_back(Json({{"variant", refusal.variant}, {"reason", refusal.reason}}));
    list.push_back(Json({{"operation", choice.operation},
                         {"shape", choice.shape},
                         {"variant", choice.variant},
                         {"refused", std::move(refused)},
                         {"others", choice.others}}));
  }
  return Json({{"kernels", std::move(list)}});
}

Task<Result<std::vector<uint8_t>>> WebModel::save(Json request) {
  DP_CO_CHECK(check_generates());
  DP_CO_CHECK(check_idle());
  DP_CO_TRY(const std::vector<int32_t> ids, read_tokens(request, "tokens"));
  engine::SessionFile session;
  session.tokens.assign(ids.begin(), ids.end());
  if (std::ranges::any_of(session.tokens, model::is_image_token)) {
    co_return fail(ErrorKind::kUnsupported, "A session whose text has pictures cannot be saved.");
  }
  auto saving = streams_->save(session.tokens);
  DP_CO_TRY(session.cache, co_await std::move(saving));
  DP_CO_TRY(const std::string fingerprint, co_await engine::session_fingerprint(*loaded_));
  co_return engine::encode_session(fingerprint, session);
}

Task<Result<Json>> WebModel::restore(std::vector<uint8_t> bytes) {
  DP_CO_CHECK(check_generates());
  DP_CO_CHECK(check_idle());
  model::DeviceModel& runner = *loaded_->runner;
  DP_CO_TRY(const std::string fingerprint, co_await engine::session_fingerprint(*loaded_));
  DP_CO_TRY(engine::SessionFile session, engine::decode_session(bytes, fingerprint));
  const uint32_t cached = model::KvCache::saved_positions(session.cache);
  if (cached > session.tokens.size() || cached > runner.ctx_len()) {
    co_return fail(ErrorKind::kInvalidInput, "The session has %u tokens in its cache; the context holds %u.",
                   cached, runner.ctx_len());
  }
  auto restoring = streams_->restore(std::span(session.tokens).first(cached), session.cache);
  DP_CO_CHECK(co_await std::move(restoring));
  co_return Json({{"tokens", session.tokens}});
}

Result<Json> WebModel::tokenize(const Json& request) const {
  DP_TRY(const tokenizer::Tokenizer* const tokenizer, this->tokenizer());
  DP_TRY(const auto text, get_string(request, "text"));
  DP_TRY(const auto add_special, get_bool(request, "addSpecial"));
  DP_TRY(const auto parse_special, get_bool(request, "parseSpecial"));
  DP_TRY(const auto ids,
         tokenizer->encode(text.value_or(std::string()), {.add_special = add_special.value_or(true),
                                                          .parse_special = parse_special.value_or(true)}));
  return Json({{"tokens", ids}});
}

Result<Json> WebModel::detokenize(const Json& request) const {
  DP_TRY(const tokenizer::Tokenizer* const tokenizer, this->tokenizer());
  DP_TRY(const std::vector<int32_t> ids, read_tokens(request, "tokens"));
  DP_TRY(const std::string text, tokenizer->decode(ids));
  return Json({{"text", text}});
}

}  // namespace doppler::web
