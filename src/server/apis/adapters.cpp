// The endpoints of adapters: vLLM's pair that loads and unloads them, and llama.cpp's list with scales.
#include "base/text.h"
#include "openai/lora_fields.h"
#include "server/routes.h"

namespace doppler::server {
namespace {

Result<std::string> needed(const Json& body, const char* key) {
  DP_TRY(const auto text, get_string(body, key));
  if (text && !text->empty()) return *text;
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be a text that is not empty.", key);
}

// false: clients may not change adapters, and it has replied so.
bool may_change(Service& service, Exchange& exchange) {
  if (service.options().adapters_may_change) return true;
  reply_error(exchange, 403,
              "Clients may not load adapters here; the server was not started with --lora-updates.",
              "permission_error");
  return false;
}

void reply_text(Exchange& exchange, const std::string& text) {
  exchange.reply(200, text, "text/plain; charset=utf-8");
}

}  // namespace

void answer_load_adapter(Service& service, const Call& call) {
  if (!may_change(service, *call.exchange)) return;
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  const auto name = needed(*body, "lora_name"), path = needed(*body, "lora_path");
  if (!name) return reply_error(*call.exchange, name.error());
  if (!path) return reply_error(*call.exchange, path.error());
  const auto model = get_string(*body, "model");
  if (!model) return reply_error(*call.exchange, model.error());
  for (const auto& host : service.models().all()) {
    if (host->source().name != *name) continue;
    return reply_error(
        *call.exchange,
        Error(ErrorKind::kInvalidInput,
              format_text("Field \"lora_name\" is \"%s\", which is a model's name.", name->c_str())));
  }
  service.with_model(call.exchange, model->value_or(""),
                     [&service, exchange = call.exchange, name = *name, path = *path](ReadyModel& ready) {
                       const auto loaded = ready.model.load_adapter(name, path);
                       if (!loaded) return reply_error(*exchange, loaded.error());
                       service.adapters().add({.name = name, .path = path, .model = ready.name});
                       reply_text(*exchange,
                                  format_text("Success: adapter \"%s\" was loaded.", name.c_str()));
                     });
}

void answer_unload_adapter(Service& service, const Call& call) {
  if (!may_change(service, *call.exchange)) return;
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  const auto name = needed(*body, "lora_name");
  if (!name) return reply_error(*call.exchange, name.error());
  const auto adapter = service.adapters().find(*name);
  if (!adapter) {
    return reply_error(*call.exchange, 404,
                       format_text("There is no adapter \"%s\".", printable(*name).c_str()),
                       "invalid_request_error", "model_not_found");
  }
  service.adapters().remove(*name);
  service.with_model(
      call.exchange, adapter->model, [exchange = call.exchange, name = *name](ReadyModel& ready) {
        // The model may not have had it yet: it loads adapters when a request asks for them.
        [[maybe_unused]] const auto unloaded = ready.model.unload_adapter(name);
        reply_text(*exchange, format_text("Success: adapter \"%s\" was unloaded.", name.c_str()));
      });
}

void answer_adapters(Service& service, const Call& call) {
  Json out = Json::array();
  uint32_t id = 0;
  for (const ServedAdapter& adapter :
       service.adapters().of_model(service.models().all().front()->source().name)) {
    out.push_back(
        {{"id", id++}, {"name", adapter.name}, {"path", adapter.path}, {"scale", adapter.standing}});
  }
  reply_json(*call.exchange, out);
}

void answer_set_adapters(Service& service, const Call& call) {
  const auto list = parse_json(call.exchange->request().body, "The body");
  if (!list) return reply_error(*call.exchange, list.error());
  const auto scales = openai::read_lora(*list);
  if (!scales) return reply_error(*call.exchange, scales.error());
  const auto set = service.adapters().set_standing(service.models().all().front()->source().name, *scales);
  if (!set) return reply_error(*call.exchange, set.error());
  reply_json(*call.exchange, {{"success", true}});
}

}  // namespace doppler::server
