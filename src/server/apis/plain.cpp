// The endpoints of OpenAI's old APIs and those about the server itself: models, tokens, templates, state, metrics.
#include "base/text.h"
#include "engine/api_impl.h"
#include "server/routes.h"
#include "server/start_chat.h"

namespace doppler::server {

using openai::Endpoint;

namespace {

Json model_json(const Service& service, const ModelHost& host) {
  Json out = {{"id", host.source().name},
              {"object", "model"},
              {"created", service.started()},
              {"owned_by", "doppler"},
              {"state", model_state_name(host.state())}};
  if (const auto info = host.info()) {
    out["max_model_len"] = info->ctx_len;
    out["meta"] = {
        {"n_ctx_train", info->trained_ctx_len}, {"n_vocab", info->vocab_size}, {"size", info->weight_bytes}};
    if (info->reads_images) out["capabilities"] = Json::array({"completion", "vision"});
  }
  return out;
}

void generate(Service& service, const Call& call, Endpoint endpoint) {
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  auto request = openai::read_served(endpoint, *body, service.options().defaults);
  const openai::Told told = request ? request->told : openai::Told();
  service.generate(call.exchange, std::move(request),
                   endpoint == Endpoint::kCompletions ? openai::make_completion_writer(told)
                                                      : openai::make_chat_writer(told));
}

// The body and the text of its field "model".
Result<Json> body_with_model(const Exchange& exchange, std::string* model) {
  DP_TRY(Json body, body_of(exchange));
  DP_TRY(const auto name, get_string(body, "model"));
  *model = name.value_or("");
  return body;
}

Result<std::vector<int32_t>> tokens_of(const Json& body) {
  const Json* list = find(body, "tokens");
  std::vector<int32_t> ids;
  if (!list || !list->is_array())
    return fail(ErrorKind::kInvalidInput, "Field \"tokens\" must be a list of token ids.");
  for (const Json& id : *list) {
    const bool is_id = id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX;
    if (!is_id) return fail(ErrorKind::kInvalidInput, "Field \"tokens\" must be a list of token ids.");
    ids.push_back(static_cast<int32_t>(id.get<uint64_t>()));
  }
  return ids;
}

Result<Json> tokenize(ReadyModel& model, const Json& body) {
  // llama.cpp's name, then vLLM's.
  DP_TRY(auto text, get_string(body, "content"));
  if (!text) {
    DP_TRY(text, get_string(body, "prompt"));
  }
  if (!text) return fail(ErrorKind::kInvalidInput, "Field \"content\" must be a text.");
  DP_TRY(const auto add_special, get_bool(body, "add_special"));
  DP_TRY(const auto parse_special, get_bool(body, "parse_special"));
  DP_TRY(const std::vector<int32_t> ids,
         model.model.tokenize(*text, add_special.value_or(false), parse_special.value_or(true)));
  return Json{{"tokens", ids}, {"count", ids.size()}, {"max_model_len", model.model.info().ctx_len}};
}

Result<Json> detokenize(ReadyModel& model, const Json& body) {
  DP_TRY(const std::vector<int32_t> ids, tokens_of(body));
  DP_TRY(const std::string text, model.model.detokenize(ids));
  return Json{{"content", text}, {"prompt", text}};
}

Result<Json> apply_template(ReadyModel& model, const Json& body) {
  DP_TRY(const openai::ServedRequest request, openai::read_served(Endpoint::kChatCompletions, body, {}));
  DP_TRY(const batch::ChatStart chat,
         start_chat(model.model.impl().loaded->text, request.chat, request.options.grammar));
  return Json{{"prompt", chat.prompt.text}};
}

// A question to a model whose answer needs no generation.
void ask(Service& service, const Call& call, Result<Json> (*answer)(ReadyModel&, const Json&)) {
  std::string model;
  auto body = body_with_model(*call.exchange, &model);
  if (!body) return reply_error(*call.exchange, body.error());
  service.with_model(call.exchange, model,
                     [exchange = call.exchange, body = std::move(*body), answer](ReadyModel& ready) {
                       const auto out = answer(ready, body);
                       if (!out) return reply_error(*exchange, out.error());
                       reply_json(*exchange, *out);
                     });
}

}  // namespace

// "ok" once the first model is there. It is answered while a model loads.
void answer_health(Service& service, const Call& call) {
  const ModelHost& first = *service.models().all().front();
  const bool is_ready = first.state() == ModelState::kReady;
  Json models = Json::object();
  for (const auto& host : service.models().all())
    models[host->source().name] = model_state_name(host->state());
  const Json body = {{"status", is_ready ? "ok" : model_state_name(first.state())},
                     {"stage", first.stage()},
                     {"models", std::move(models)}};
  call.exchange->reply(is_ready ? 200 : 503, to_text(body), "application/json",
                       is_ready ? HttpFields{} : HttpFields{{"Retry-After", "1"}});
}

void answer_models(Service& service, const Call& call) {
  Json list = Json::array();
  for (const auto& host : service.models().all()) list.push_back(model_json(service, *host));
  // Some agents look for `models`.
  reply_json(*call.exchange, {{"object", "list"}, {"data", list}, {"models", list}});
}

void answer_model(Service& service, const Call& call) {
  if (const auto host = service.admit(*call.exchange, call.rest))
    reply_json(*call.exchange, model_json(service, *host));
}

void answer_chat(Service& service, const Call& call) { generate(service, call, Endpoint::kChatCompletions); }
void answer_completions(Service& service, const Call& call) {
  generate(service, call, Endpoint::kCompletions);
}

void answer_tokenize(Service& service, const Call& call) { ask(service, call, tokenize); }
void answer_detokenize(Service& service, const Call& call) { ask(service, call, detokenize); }
void answer_template(Service& service, const Call& call) { ask(service, call, apply_template); }

void answer_props(Service& service, const Call& call) {
  Json models = Json::array();
  for (const auto& host : service.models().all()) {
    Json item = model_json(service, *host);
    item["path"] = host->source().path;
    if (const auto info = host->info()) {
      item["architecture"] = info->architecture;
      item["device"] = {{"adapter", info->adapter}, {"provider", info->provider}};
      item["has_chat_template"] = info->has_chat_template;
      item["synthetic"] = info->synthetic;
    }
    models.push_back(std::move(item));
  }
  const SamplingOptions& s = service.options().defaults.sampling;
  reply_json(*call.exchange, {{"total_slots", service.options().places},
                              {"most_waiting", service.options().most_waiting},
                              {"model_path", service.models().all().front()->source().path},
                              {"default_generation_settings",
                               {{"max_tokens", service.options().defaults.max_tokens},
                                {"temperature", s.temperature},
                                {"top_k", s.top_k},
                                {"top_p", s.top_p},
                                {"min_p", s.min_p}}},
                              {"models", std::move(models)}});
}

void answer_slots(Service& service, const Call& call) {
  Json out = Json::array();
  for (const auto& host : service.models().all()) {
    const SchedulerLoad load = host->load_now();
    out.push_back({{"model", host->source().name},
                   {"state", model_state_name(host->state())},
                   {"requests", host->active()},
                   {"running", load.running},
                   {"waiting", load.waiting},
                   {"places", service.options().places},
                   {"cache_tokens", static_cast<uint64_t>(load.blocks) * load.block_len},
                   {"cache_tokens_free", static_cast<uint64_t>(load.free_blocks) * load.block_len},
                   {"host_cache_bytes", load.host_cache_bytes}});
  }
  reply_json(*call.exchange, out);
}

void answer_metrics(Service& service, const Call& call) {
  call.exchange->reply(200, service.metrics().text(service.models(), service.connections()),
                       "text/plain; version=0.0.4; charset=utf-8");
}

}  // namespace doppler::server
