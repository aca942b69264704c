#include "web/web_model.h"

#include "engine/generation_json.h"
#include "engine/generator.h"
#include "engine/model_options.h"
#include "engine/tuning.h"
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
  auto loading = engine::load_model(*device_, make_web_file_set(std::move(files)), std::move(runner),
                                    options.chat_template, std::move(progress));
  auto loaded = co_await std::move(loading);
  if (!loaded) {
    device_.reset();
    co_return forward(std::move(loaded).error());
  }
  loaded_ = std::move(*loaded);
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
                  {"trainedCtxLen", info.trained_ctx_len},
                  {"weightBytes", info.weight_bytes},
                  {"cacheBytes", info.cache_bytes},
                  {"scratchBytes", info.scratch_bytes},
                  {"loadSeconds", info.load.seconds},
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

Result<std::vector<int32_t>> WebModel::prompt_tokens(const Json& request, bool add_special) const {
  if (find(request, "tokens")) return read_tokens(request, "tokens");
  DP_TRY(const tokenizer::Tokenizer* const tokenizer, this->tokenizer());
  if (const Json* messages = find(request, "messages")) {
    DP_TRY(const std::string text,
           engine::apply_chat_template(loaded_->text, *messages, /*add_generation_prompt=*/true));
    // The template writes the special tokens itself.
    return tokenizer->encode(text, {.add_special = false, .parse_special = true});
  }
  DP_TRY(const auto prompt, get_string(request, "prompt"));
  if (!prompt) return fail(ErrorKind::kInvalidInput, "A generation needs tokens, messages or a prompt.");
  return tokenizer->encode(*prompt, {.add_special = add_special, .parse_special = true});
}

Task<Result<Json>> WebModel::generate(Json request, std::function<void(const std::string&)> on_text) {
  if (!loaded_) co_return fail(ErrorKind::kInvalidInput, "No model is loaded.");
  if (generating_)
    co_return fail(ErrorKind::kInvalidInput, "A generation is under way; cancel it or wait for it.");
  DP_CO_TRY(const GenerateOptions options, read_generate_options(member(request, "options")));
  DP_CO_TRY(const std::vector<int32_t> ids, prompt_tokens(request, options.add_special));
  cancelled_.store(false);
  const ModelInfo info = engine::describe(*loaded_, *device_);
  const engine::GeneratorConfig config{.vocab_size = info.vocab_size,
                                       .stop_tokens = loaded_->text.stop_tokens,
                                       .batch = engine::default_batch(*loaded_)};
  engine::Generator generator(*loaded_->runner, loaded_->text.tokenizer.get(), config, cached_tokens_,
                              cancelled_);
  std::vector<uint32_t> prompt(ids.begin(), ids.end());
  DP_CO_CHECK(generator.start(std::move(prompt), options));
  generating_ = true;
  while (true) {
    auto waiting = generator.next();
    auto piece = co_await std::move(waiting);
    if (!piece) {
      generating_ = false;
      co_return forward(std::move(piece).error());
    }
    if (!*piece) break;
    if (!(*piece)->empty()) on_text(**piece);
  }
  generating_ = false;
  co_return engine::generation_json(info, engine::counters_since_load(*loaded_, *device_),
                                    generator.result());
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
