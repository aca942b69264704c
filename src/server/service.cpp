#include "server/service.h"

#include <algorithm>
#include <ctime>

#include "base/log.h"
#include "base/text.h"
#include "server/generation.h"

namespace doppler::server {
namespace {

constexpr const char* kRetrySeconds = "1";

// Batches leave some places to those who wait for their answer.
uint32_t batch_places(uint32_t places) { return std::max(1u, places - places / 4); }

}  // namespace

Service::Service(ServiceOptions options, std::vector<ModelSource> sources,
                 std::function<size_t()> connections, std::unique_ptr<FileStore> files)
    : options_(std::move(options)),
      connections_(std::move(connections)),
      files_(std::move(files)),
      models_(std::move(sources), options_.most_loaded, options_.any_name),
      batches_(*files_, models_,
               {.defaults = options_.defaults, .in_flight = batch_places(options_.places)}) {
  for (const auto& host : models_.all()) {
    for (const AdapterFile& file : host->source().adapters) {
      adapters_.add(
          {.name = file.name, .path = file.path, .model = host->source().name, .scale = file.scale});
    }
  }
}

Error overflow_error(const Exchange& exchange, const ContextOverflow& overflow) {
  const auto tokens = static_cast<unsigned long long>(overflow.prompt_tokens);
  const uint32_t most = overflow.ctx_len - (overflow.needs_room ? 1 : 0);
  return Error(ErrorKind::kInvalidInput,
               is_for_anthropic(exchange)
                   ? format_text("prompt is too long: %llu tokens > %u maximum", tokens, most)
                   : format_text("This model's maximum context length is %u tokens, but the prompt has "
                                 "%llu; allowed are %u.",
                                 overflow.ctx_len, tokens, most));
}

bool is_for_anthropic(const Exchange& exchange) {
  const HttpRequest& request = exchange.request();
  if (request.path.starts_with("/v1/messages")) return true;
  const bool is_of_both = request.path.starts_with("/v1/models") || request.path.starts_with("/models");
  return is_of_both && !request.field("anthropic-version").empty();
}

std::string utc_text(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string error_text(const Exchange& exchange, const std::string& message, const char* type,
                       const char* code) {
  if (exchange.request().path.starts_with("/api/")) return to_text(Json{{"error", message}});
  if (is_for_anthropic(exchange)) {
    return to_text(Json{{"type", "error"}, {"error", {{"type", type}, {"message", message}}}});
  }
  return to_text(openai::error_body(message, type, code));
}

void reply_error(Exchange& exchange, int status, const std::string& message, const char* type,
                 const char* code, HttpFields fields) {
  exchange.reply(status, error_text(exchange, message, type, code), "application/json", std::move(fields));
}

void reply_error(Exchange& exchange, const Error& error, const char* code) {
  const int status = openai::error_status(error);
  reply_error(exchange, status, error.sentence(), status < 500 ? "invalid_request_error" : "server_error",
              code);
}

void reply_json(Exchange& exchange, const Json& body) { exchange.reply(200, to_text(body)); }

std::vector<std::string> unknown_fields(const Json& body, std::span<const std::string_view> known) {
  std::vector<std::string> out;
  for (const auto& [name, value] : body.items()) {
    if (std::ranges::find(known, name) == known.end()) out.push_back(name);
  }
  return out;
}

Result<Json> body_of(const Exchange& exchange) {
  const std::string& text = exchange.request().body;
  if (text.empty()) return Json::object();
  DP_TRY(Json body, parse_json(text, "The body"));
  if (!body.is_object())
    return fail(ErrorKind::kInvalidInput, "The body must be an object, but it is %s.",
                printable(to_text(body)).c_str());
  return body;
}

void Service::note_ignored(const std::vector<std::string>& fields) {
  const std::lock_guard lock(mutex_);
  constexpr size_t kMostNoted = 256;  // names are the clients' own
  for (const std::string& field : fields) {
    if (noted_.size() < kMostNoted && noted_.insert(field).second) {
      log(LogLevel::kWarning, "Field \"%s\" of a request is not known and was ignored; this is said once.",
          printable(field).c_str());
    }
  }
}

std::shared_ptr<ModelHost> Service::admit(Exchange& exchange, const std::string& name) {
  const std::optional<ServedAdapter> adapter = adapters_.find(name);
  const std::shared_ptr<ModelHost> host = models_.find(adapter ? adapter->model : name);
  if (!host) {
    reply_error(
        exchange, 404,
        format_text("Model \"%s\" is not served here; /v1/models lists what is.", printable(name).c_str()),
        is_for_anthropic(exchange) ? "not_found_error" : "invalid_request_error", "model_not_found");
    return nullptr;
  }
  const uint32_t allowed = options_.places * host->devices() + options_.most_waiting;
  if (host->active() >= allowed) {
    reply_error(exchange, 429,
                format_text("%u requests are under way or wait; no more are taken now.", allowed),
                "rate_limit_error", "rate_limit_exceeded", {{"Retry-After", kRetrySeconds}});
    return nullptr;
  }
  return host;
}

void Service::generate(std::shared_ptr<Exchange> exchange, Result<openai::ServedRequest> request,
                       std::unique_ptr<openai::AnswerWriter> writer) {
  if (!request) return reply_error(*exchange, request.error());
  note_ignored(request->ignored);
  using Seed = openai::ServedRequest::Seed;
  if (request->seed == Seed::kUnsaid && options_.has_seed) request->seed = Seed::kGiven;
  const std::shared_ptr<ModelHost> host = admit(*exchange, request->model);
  if (!host) return;
  if (const auto chosen = adapters_.choose(host->source().name, *request); !chosen) {
    return reply_error(*exchange, chosen.error());
  }
  const auto error = [exchange = exchange.get()](const Error& of, const char* code) {
    return error_text(*exchange, of.sentence(),
                      openai::error_status(of) < 500 ? "invalid_request_error" : "server_error", code);
  };
  const auto generation =
      std::make_shared<Generation>(std::move(exchange), std::move(*request), std::move(writer), *host, error);
  models_.ask(host,
              [generation](ReadyModel* model, const Error* failed) { generation->begin(model, failed); });
}

void Service::with_model(std::shared_ptr<Exchange> exchange, const std::string& name,
                         std::function<void(ReadyModel&)> work) {
  const std::shared_ptr<ModelHost> host = admit(*exchange, name);
  if (!host) return;
  const auto use = std::make_shared<ModelHost::Use>(*host);
  models_.ask(host, [exchange, use, work = std::move(work)](ReadyModel* model, const Error* error) {
    if (error) return reply_error(*exchange, *error);
    work(*model);
  });
}

}  // namespace doppler::server
