// Embeddings: OpenAI's /v1/embeddings, Ollama's /api/embed and, for older clients, /api/embeddings. Texts of a request
// are evaluated one after another on the model's thread.
#include <algorithm>
#include <chrono>
#include <variant>

#include "base/base64.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "server/routes.h"

namespace doppler::server {
namespace {

constexpr size_t kMostInputs = 2048;  // as OpenAI's API
// Those that are read, and those of the two APIs that change nothing here.
constexpr std::string_view kFields[] = {"model",    "input", "prompt",     "dimensions", "encoding_format",
                                        "truncate", "user",  "keep_alive", "options"};

struct Asked;
struct Embedded;

// An API: its requests and its answers.
struct Way {
  const char* field;
  bool truncates, takes_nothing;  // truncates: unless the body says; takes_nothing: no input gives no vectors
  Json (*body)(const Asked&, const std::string& model, const Embedded&);
};

using Input = std::variant<std::string, std::vector<int32_t>>;

Unexpected wrong_input(const char* field) {
  return fail(ErrorKind::kInvalidInput,
              "Field \"%s\" must be a text, a list of texts, a list of token ids, or a list of such lists.",
              field);
}

Result<Input> one_input(const Json& value, const char* field) {
  if (value.is_string()) return Input(value.get<std::string>());
  if (!value.is_array() || value.empty()) return wrong_input(field);
  std::vector<int32_t> ids;
  for (const Json& id : value) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX)
      return wrong_input(field);
    ids.push_back(id.get<int32_t>());
  }
  return Input(std::move(ids));
}

Result<std::vector<Input>> inputs_of(const Json& body, const Way& way) {
  const char* field = way.field;
  const Json* value = find(body, field);
  const bool is_nothing =
      !value || value->is_null() || *value == Json("") || (value->is_array() && value->empty());
  if (is_nothing && way.takes_nothing) return std::vector<Input>();
  if (!value) return wrong_input(field);
  std::vector<Input> out;
  if (value->is_string() || (value->is_array() && !value->empty() && value->front().is_number())) {
    DP_TRY(Input input, one_input(*value, field));
    out.push_back(std::move(input));
    return out;
  }
  if (!value->is_array() || value->empty()) return wrong_input(field);
  if (value->size() > kMostInputs) {
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" has %zu entries; at most %zu are allowed.", field,
                value->size(), kMostInputs);
  }
  for (const Json& entry : *value) {
    DP_TRY(Input input, one_input(entry, field));
    out.push_back(std::move(input));
  }
  return out;
}

struct Asked {
  std::string model;
  std::vector<Input> inputs;
  EmbedOptions options;
  bool is_base64 = false;
};

Result<Asked> read_asked(const Json& body, const Way& way) {
  Asked asked;
  DP_TRY(const auto model, get_string(body, "model"));
  asked.model = model.value_or("");
  DP_TRY(asked.inputs, inputs_of(body, way));
  DP_TRY(const auto dimensions, get_integer(body, "dimensions"));
  if (dimensions && (*dimensions < 1 || *dimensions > INT32_MAX)) {
    return fail(ErrorKind::kInvalidInput, "Field \"dimensions\" is %lld; allowed is 1 or more.",
                static_cast<long long>(*dimensions));
  }
  asked.options.dimensions = static_cast<uint32_t>(dimensions.value_or(0));
  DP_TRY(const auto format, get_string(body, "encoding_format"));
  asked.is_base64 = format == "base64";
  if (format && format != "base64" && format != "float") {
    return fail(ErrorKind::kInvalidInput,
                "Field \"encoding_format\" is \"%s\"; allowed are float and base64.",
                printable(*format).c_str());
  }
  DP_TRY(const auto truncate, get_bool(body, "truncate"));
  asked.options.truncate = truncate.value_or(way.truncates);
  return asked;
}

struct Embedded {
  std::vector<Embedding> embeddings;
  std::optional<ContextOverflow> overflow = {};  // an input is too long; the rest means nothing
  uint64_t tokens = 0;
  double seconds = 0;
};

// Null: the client left.
Result<std::optional<Embedded>> embed_all(ReadyModel& ready, const Asked& asked, const Exchange& exchange) {
  const auto start = std::chrono::steady_clock::now();
  Embedded out;
  for (const Input& input : asked.inputs) {
    if (exchange.is_gone()) return std::optional<Embedded>();
    std::vector<int32_t> ids;
    if (const auto* text = std::get_if<std::string>(&input)) {
      DP_TRY(ids, ready.model.tokenize(*text, asked.options.add_special, /*parse_special=*/false));
    } else {
      ids = std::get<std::vector<int32_t>>(input);
    }
    const uint32_t ctx_len = ready.model.info().ctx_len;
    if (ids.size() > ctx_len && !asked.options.truncate && ready.model.info().embedding_dim != 0) {
      out.overflow = ContextOverflow{.prompt_tokens = ids.size(), .ctx_len = ctx_len, .needs_room = false};
      return std::optional<Embedded>(std::move(out));
    }
    DP_TRY(Embedding embedding, ready.model.embed(ids, asked.options));
    out.tokens += embedding.tokens;
    out.embeddings.push_back(std::move(embedding));
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::optional<Embedded>(std::move(out));
}

Json openai_body(const Asked& asked, const std::string& model, const Embedded& made) {
  Json data = Json::array();
  for (const Embedding& embedding : made.embeddings) {
    Json item = {{"object", "embedding"}, {"index", data.size()}};
    if (asked.is_base64) {
      item["embedding"] = base64(bytes_of(embedding.values));
    } else {
      item["embedding"] = embedding.values;
    }
    data.push_back(std::move(item));
  }
  return {{"object", "list"},
          {"data", std::move(data)},
          {"model", model},
          {"usage", {{"prompt_tokens", made.tokens}, {"total_tokens", made.tokens}}}};
}

Json ollama_body(const Asked&, const std::string& model, const Embedded& made) {
  Json list = Json::array();
  for (const Embedding& embedding : made.embeddings) list.push_back(embedding.values);
  return {{"model", model},
          {"embeddings", std::move(list)},
          {"total_duration", static_cast<int64_t>(made.seconds * 1e9)},
          {"load_duration", 0},
          {"prompt_eval_count", made.tokens}};
}

Json old_ollama_body(const Asked&, const std::string&, const Embedded& made) {
  return {{"embedding", made.embeddings.empty() ? std::vector<float>() : made.embeddings.front().values}};
}

void answer(Service& service, const Call& call, const Way& way) {
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  auto asked = read_asked(*body, way);
  if (!asked) return reply_error(*call.exchange, asked.error());
  service.note_ignored(unknown_fields(*body, kFields));
  const std::string name = asked->model;
  service.with_model(
      call.exchange, name,
      [exchange = call.exchange, asked = std::move(*asked), write = way.body](ReadyModel& ready) {
        const auto made = embed_all(ready, asked, *exchange);
        if (!made) return reply_error(*exchange, made.error());
        if (!*made) return;
        if (const auto& overflow = (*made)->overflow)
          return reply_error(*exchange, overflow_error(*exchange, *overflow), kContextLengthExceeded);
        exchange->tell(
            {.model = ready.name, .finish = "stop", .prompt_tokens = static_cast<uint32_t>((*made)->tokens)});
        reply_json(*exchange, write(asked, ready.name, **made));
      });
}

}  // namespace

void answer_embeddings(Service& service, const Call& call) {
  answer(service, call, {.field = "input", .truncates = false, .takes_nothing = false, .body = openai_body});
}

void answer_ollama_embed(Service& service, const Call& call) {
  answer(service, call, {.field = "input", .truncates = true, .takes_nothing = true, .body = ollama_body});
}

void answer_ollama_embeddings(Service& service, const Call& call) {
  answer(service, call,
         {.field = "prompt", .truncates = true, .takes_nothing = true, .body = old_ollama_body});
}

}  // namespace doppler::server
