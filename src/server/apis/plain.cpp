// The endpoints of OpenAI's old APIs and those about the server itself: models, tokens, templates, state, metrics.
#include "base/text.h"
#include "server/routes.h"

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

// Clients see an adapter as a model.
Json adapter_json(const Service& service, const ServedAdapter& adapter) {
  return {{"id", adapter.name},    {"object", "model"},    {"created", service.started()},
          {"owned_by", "doppler"}, {"root", adapter.path}, {"parent", adapter.model}};
}

Json anthropic_model(const Service& service, const std::string& name) {
  return {
      {"type", "model"}, {"id", name}, {"display_name", name}, {"created_at", utc_text(service.started())}};
}

// Lists the defaults under the names of a body's fields.
Json defaults_json(const ServiceOptions& options) {
  const GenerateOptions& o = options.defaults;
  const SamplingOptions& s = o.sampling;
  Json biases = Json::object();
  for (const auto& [token, bias] : s.logit_bias) biases[std::to_string(token)] = bias;
  return {{"max_tokens", o.max_tokens},
          {"temperature", s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"repeat_penalty", s.repeat_penalty},
          {"presence_penalty", s.presence_penalty},
          {"frequency_penalty", s.frequency_penalty},
          {"top_n_sigma", s.top_n_sigma},
          {"typical_p", s.typical_p},
          {"xtc_probability", s.xtc_probability},
          {"xtc_threshold", s.xtc_threshold},
          {"dynatemp_range", s.dynatemp_range},
          {"dynatemp_exponent", s.dynatemp_exponent},
          {"mirostat_tau", s.mirostat_tau},
          {"mirostat_eta", s.mirostat_eta},
          {"dry_multiplier", s.dry_multiplier},
          {"dry_base", s.dry_base},
          {"dry_allowed_length", s.dry_allowed_length},
          {"dry_range", s.dry_range},
          {"dry_sequence_breakers", s.dry_breakers},
          {"min_tokens", s.min_tokens},
          {"logit_bias", std::move(biases)},
          {"seed", options.has_seed ? Json(s.seed) : Json()},
          {"stop", o.stop},
          {"ignore_eos", o.ignore_eos},
          {"when_full", o.when_full == WhenFull::kSlide ? "slide" : "stop"},
          {"json_blanks", o.grammar.json_blanks},
          {"chunk_tokens", o.batch}};
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
  DP_TRY(const batch::ChatStart chat, model.start(request.chat, request.options.grammar));
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

// Says "ok" when the first model is there and its kernels ran. It answers while a model loads too.
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
  const bool is_anthropic = is_for_anthropic(*call.exchange);
  for (const auto& host : service.models().all()) {
    const std::string& name = host->source().name;
    list.push_back(is_anthropic ? anthropic_model(service, name) : model_json(service, *host));
    for (const ServedAdapter& adapter : service.adapters().of_model(name)) {
      list.push_back(is_anthropic ? anthropic_model(service, adapter.name) : adapter_json(service, adapter));
    }
  }
  if (is_anthropic) {
    const Json first = list.front()["id"], last = list.back()["id"];
    return reply_json(
        *call.exchange,
        {{"data", std::move(list)}, {"has_more", false}, {"first_id", first}, {"last_id", last}});
  }
  // Some agents look for `models`.
  reply_json(*call.exchange, {{"object", "list"}, {"data", list}, {"models", list}});
}

void answer_model(Service& service, const Call& call) {
  const bool is_anthropic = is_for_anthropic(*call.exchange);
  if (const auto adapter = service.adapters().find(call.rest)) {
    return reply_json(*call.exchange, is_anthropic ? anthropic_model(service, adapter->name)
                                                   : adapter_json(service, *adapter));
  }
  const auto host = service.admit(*call.exchange, call.rest);
  if (!host) return;
  reply_json(*call.exchange,
             is_anthropic ? anthropic_model(service, host->source().name) : model_json(service, *host));
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
  reply_json(*call.exchange, {{"total_slots", service.options().places},
                              {"most_waiting", service.options().most_waiting},
                              {"model_path", service.models().all().front()->source().path},
                              {"default_generation_settings", defaults_json(service.options())},
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
  call.exchange->reply(
      200, service.metrics().text(service.models(), service.connections(), service.options().counters),
      "text/plain; version=0.0.4; charset=utf-8");
}

}  // namespace doppler::server
