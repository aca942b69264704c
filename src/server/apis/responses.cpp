// OpenAI's Responses: an answer is a list of items (reasoning, a message, calls), told by events that carry a number
// each.
#include "base/text.h"
#include "server/apis/listing.h"
#include "server/apis/responses_body.h"
#include "server/routes.h"

namespace doppler::server {

using openai::AnswerEvent;
using openai::ChoiceAnswer;

namespace {

constexpr const char* kIdPrefix = "resp_";

Json logprobs_of(std::span<const openai::ToldToken> tokens) {
  if (tokens.empty()) return Json::array();
  return openai::logprobs_json(openai::Endpoint::kChatCompletions, tokens)["content"];
}
Json text_part(const std::string& text, std::span<const openai::ToldToken> tokens = {}) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", Json::array()},
          {"logprobs", logprobs_of(tokens)}};
}
Json reasoning_part(const std::string& text) { return {{"type", "reasoning_text"}, {"text", text}}; }

Json message_item(const std::string& id, const char* status, Json content) {
  return {{"id", id},
          {"type", "message"},
          {"status", status},
          {"role", "assistant"},
          {"content", std::move(content)}};
}
Json reasoning_item(const std::string& id, const char* status, Json content) {
  return {{"id", id},
          {"type", "reasoning"},
          {"status", status},
          {"summary", Json::array()},
          {"content", std::move(content)}};
}
Json call_item(const std::string& id, const char* status, const openai::ToolCall& call) {
  return {{"id", id},          {"type", "function_call"},
          {"status", status},  {"call_id", "call_" + call.id},
          {"name", call.name}, {"arguments", call.arguments}};
}

bool is_cut(const ChoiceAnswer& answer) {
  return answer.stop == StopReason::kTokenLimit || answer.stop == StopReason::kContextFull;
}

class ResponsesWriter : public openai::AnswerWriter {
 public:
  // `id`: of the answer, without its prefix; it is under way until the writer ends.
  ResponsesWriter(ResponsesStore& store, ResponsesRequest request, std::string id, bool tells_timings)
      : store_(store), request_(std::move(request)), tells_timings_(tells_timings) {
    head_.id = std::move(id);
  }
  ~ResponsesWriter() override { store_.end(kIdPrefix + head_.id); }

  std::string begin(const openai::AnswerHead& head, uint32_t) override {
    head_ = head;
    const Json now = response("in_progress", Json::array(), nullptr);
    // Events count themselves, so they are made one after the other.
    std::string out = event_text("response.created", {{"response", now}});
    return out += event_text("response.in_progress", {{"response", now}});
  }

  std::string event(uint32_t, const AnswerEvent& event, const ChoiceAnswer& answer) override {
    timings_ = answer.timings;
    std::string out;
    switch (event.kind) {
      case AnswerEvent::Kind::kText:
        out = in_item(Item::kMessage, answer);
        return out += text_delta(event.text, answer);
      case AnswerEvent::Kind::kReasoning:
        out = in_item(Item::kReasoning, answer);
        text_ += event.text;
        return out += delta("response.reasoning_text.delta", {{"content_index", 0}, {"delta", event.text}});
      case AnswerEvent::Kind::kCall:
        out = close_item();
        return out += in_item(Item::kCall, answer);
      case AnswerEvent::Kind::kArguments:
        call_.arguments += event.text;
        return delta("response.function_call_arguments.delta", {{"delta", event.text}});
    }
    return {};
  }

  std::string progress(uint32_t, const ChoiceAnswer& answer, double seconds) override {
    return event_text("response.in_progress",
                      {{"response", response("in_progress", Json::array(), nullptr)},
                       {"prompt_progress", openai::progress_json(openai::usage_of(answer.timings),
                                                                 answer.timings.evaluated_tokens, seconds)}});
  }

  std::string end_choice(uint32_t, const ChoiceAnswer& answer) override {
    if (item_ == Item::kMessage) take_tokens(answer);
    return close_item();
  }

  std::string end(const std::vector<ChoiceAnswer>& choices, const openai::Usage& usage) override {
    const bool cut = is_cut(choices[0]);
    return event_text(cut ? "response.incomplete" : "response.completed",
                      {{"response", response(cut ? "incomplete" : "completed", items_, &usage)}});
  }

  std::string error(const Error& error) override {
    std::string out = close_item();
    Json failed = response("failed", items_, nullptr);
    failed["error"] = {{"code", "server_error"}, {"message", error.sentence()}};
    return out += event_text("response.failed", {{"response", std::move(failed)}});
  }

  Json whole(const openai::AnswerHead& head, const std::vector<ChoiceAnswer>& choices,
             const openai::Usage& usage) override {
    head_ = head;
    return response(is_cut(choices[0]) ? "incomplete" : "completed", items_of(choices[0]), &usage);
  }

  void keep(const openai::AnswerHead& head, const std::vector<ChoiceAnswer>& choices,
            const openai::Usage& usage) override {
    head_ = head;
    if (!request_.is_stored) return;
    const ChoiceAnswer& answer = choices[0];
    Json messages = request_.conversation;
    Json told = {{"role", "assistant"}, {"content", answer.text}};
    for (const openai::ToolCall& call : answer.calls) {
      told["tool_calls"].push_back({{"id", "call_" + call.id},
                                    {"type", "function"},
                                    {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    messages.push_back(std::move(told));
    const Json& items = items_.empty() ? items_of(answer) : items_;
    store_.put(kIdPrefix + head_.id,
               {.body = response(is_cut(answer) ? "incomplete" : "completed", items, &usage),
                .messages = std::move(messages),
                .items = request_.items});
  }

 private:
  enum class Item : uint8_t { kNone, kMessage, kReasoning, kCall };

  Json response(const char* status, Json output, const openai::Usage* usage) const {
    Json out = {{"id", kIdPrefix + head_.id}, {"object", "response"},       {"created_at", head_.created},
                {"status", status},           {"error", nullptr},           {"incomplete_details", nullptr},
                {"model", head_.model},       {"output", std::move(output)}};
    out.update(request_.shown);
    if (std::string_view(status) == "incomplete")
      out["incomplete_details"] = {{"reason", "max_output_tokens"}};
    if (usage) {
      if (tells_timings_) out["timings"] = openai::timings_json(*usage);
      out["usage"] = {{"input_tokens", usage->prompt_tokens},
                      {"input_tokens_details", {{"cached_tokens", usage->cached_tokens}}},
                      {"output_tokens", usage->generated_tokens},
                      {"output_tokens_details", {{"reasoning_tokens", 0}}},
                      {"total_tokens", usage->prompt_tokens + usage->generated_tokens}};
    }
    return out;
  }

  Json items_of(const ChoiceAnswer& answer) const {
    Json out = Json::array();
    const auto id = [&](const char* prefix) { return prefix + head_.id + "_" + std::to_string(out.size()); };
    if (!answer.reasoning.empty()) {
      out.push_back(reasoning_item(id("rs_"), "completed", Json::array({reasoning_part(answer.reasoning)})));
    }
    if (!answer.text.empty() || answer.calls.empty()) {
      out.push_back(
          message_item(id("msg_"), "completed", Json::array({text_part(answer.text, answer.tokens)})));
    }
    for (const openai::ToolCall& call : answer.calls) out.push_back(call_item(id("fc_"), "completed", call));
    return out;
  }

  std::string event_text(const char* name, Json fields) {
    Json event = {{"type", name}, {"sequence_number", number_++}};
    event.update(fields);
    return std::string("event: ") + name + "\n" + openai::data_line(event);
  }
  std::string item_event(const char* name, Json fields) {
    Json event = {{"item_id", id_}, {"output_index", items_.size()}};
    event.update(fields);
    return event_text(name, std::move(event));
  }
  std::string delta(const char* name, Json fields) {
    if (tells_timings_) fields["timings"] = openai::timings_json(openai::usage_of(timings_));
    return item_event(name, std::move(fields));
  }
  std::string text_delta(const std::string& text, const ChoiceAnswer& answer) {
    text_ += text;
    Json logprobs = logprobs_of(take_tokens(answer));
    return delta("response.output_text.delta",
                 {{"content_index", 0}, {"delta", text}, {"logprobs", std::move(logprobs)}});
  }
  // Takes the tokens since the last text, so that each is told once.
  std::span<const openai::ToldToken> take_tokens(const ChoiceAnswer& answer) {
    const size_t from = told_tokens_;
    tokens_.insert(tokens_.end(), answer.tokens.begin() + static_cast<ptrdiff_t>(from), answer.tokens.end());
    told_tokens_ = answer.tokens.size();
    return std::span(answer.tokens).subspan(from);
  }

  std::string in_item(Item item, const ChoiceAnswer& answer) {
    if (item_ == item) return {};
    std::string out = close_item();
    item_ = item;
    text_.clear();
    tokens_.clear();
    const char* prefix = item == Item::kMessage ? "msg_" : item == Item::kReasoning ? "rs_" : "fc_";
    id_ = prefix + head_.id + "_" + std::to_string(items_.size());
    if (item == Item::kCall)
      call_ = {.id = answer.calls.back().id, .name = answer.calls.back().name, .arguments = {}};
    out += event_text("response.output_item.added",
                      {{"output_index", items_.size()}, {"item", item_json("in_progress", Json::array())}});
    if (item == Item::kCall) return out;
    return out += item_event("response.content_part.added", {{"content_index", 0}, {"part", part()}});
  }

  std::string close_item() {
    if (item_ == Item::kNone) return {};
    std::string out;
    if (item_ == Item::kCall) {
      out = item_event("response.function_call_arguments.done",
                       {{"name", call_.name}, {"arguments", call_.arguments}});
    } else {
      Json fields = {{"content_index", 0}, {"text", text_}};
      if (item_ == Item::kMessage) fields["logprobs"] = logprobs_of(tokens_);
      out = item_event(item_ == Item::kMessage ? "response.output_text.done" : "response.reasoning_text.done",
                       std::move(fields));
      out += item_event("response.content_part.done", {{"content_index", 0}, {"part", part()}});
    }
    Json item = item_json("completed", Json::array({part()}));
    out += event_text("response.output_item.done", {{"output_index", items_.size()}, {"item", item}});
    items_.push_back(std::move(item));
    item_ = Item::kNone;
    return out;
  }
  Json part() const { return item_ == Item::kReasoning ? reasoning_part(text_) : text_part(text_, tokens_); }
  Json item_json(const char* status, Json content) const {
    if (item_ == Item::kCall) return call_item(id_, status, call_);
    return item_ == Item::kMessage ? message_item(id_, status, std::move(content))
                                   : reasoning_item(id_, status, std::move(content));
  }

  ResponsesStore& store_;
  const ResponsesRequest request_;
  openai::AnswerHead head_;
  const bool tells_timings_;
  Timings timings_;  // so far
  uint64_t number_ = 0;
  // The item under way.
  Item item_ = Item::kNone;
  std::string id_, text_;
  std::vector<openai::ToldToken> tokens_;  // of its text
  size_t told_tokens_ = 0;                 // of the answer
  openai::ToolCall call_;
  Json items_ = Json::array();  // that are told
};

}  // namespace

void answer_responses(Service& service, const Call& call) {
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  const std::string id = call.exchange->id().substr(call.exchange->id().find('_') + 1);
  auto read = read_responses(*body, id, service.responses());
  if (!read) return reply_error(*call.exchange, read.error());
  service.note_ignored(read->ignored);
  auto request =
      openai::read_served(openai::Endpoint::kChatCompletions, read->chat, service.options().defaults);
  const bool tells_timings = request && request->told.timings;
  service.responses().begin(kIdPrefix + id, [exchange = std::weak_ptr(call.exchange)] {
    if (const auto now = exchange.lock()) now->cancel();
  });
  service.generate(
      call.exchange, std::move(request),
      std::make_unique<ResponsesWriter>(service.responses(), std::move(*read), id, tells_timings));
}

// The number of tokens of an input.
void answer_input_tokens(Service& service, const Call& call) {
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  const auto read = read_responses(*body, "", service.responses());
  if (!read) return reply_error(*call.exchange, read.error());
  auto request =
      openai::read_served(openai::Endpoint::kChatCompletions, read->chat, service.options().defaults);
  if (!request) return reply_error(*call.exchange, request.error());
  const std::string model = request->model;
  service.with_model(
      call.exchange, model, [exchange = call.exchange, request = std::move(*request)](ReadyModel& ready) {
        const auto chat = ready.start(request.chat, request.options.grammar);
        if (!chat) return reply_error(*exchange, chat.error());
        reply_json(*exchange, {{"object", "response.input_tokens"}, {"input_tokens", chat->tokens.size()}});
      });
}

// GET /v1/responses/ID and /v1/responses/ID/input_items
void answer_response(Service& service, const Call& call) {
  constexpr std::string_view kItems = "/input_items";
  const bool wants_items = call.rest.ends_with(kItems);
  const std::string id =
      wants_items ? call.rest.substr(0, call.rest.size() - kItems.size()) : std::string(call.rest);
  const auto stored = service.responses().get(id);
  if (stored && wants_items)
    return reply_listing(*call.exchange, {stored->items.begin(), stored->items.end()});
  if (stored) return reply_json(*call.exchange, stored->body);
  reply_error(*call.exchange, 404, "Response \"" + printable(id) + "\" is not kept here.",
              "invalid_request_error");
}

void answer_delete_response(Service& service, const Call& call) {
  if (service.responses().remove(call.rest)) {
    return reply_json(*call.exchange, {{"id", call.rest}, {"object", "response"}, {"deleted", true}});
  }
  reply_error(*call.exchange, 404, "Response \"" + printable(call.rest) + "\" is not kept here.",
              "invalid_request_error");
}

// POST /v1/responses/ID/cancel: a running answer ends with the text so far.
void answer_cancel_response(Service& service, const Call& call) {
  constexpr std::string_view kCancel = "/cancel";
  const std::string id =
      call.rest.ends_with(kCancel) ? call.rest.substr(0, call.rest.size() - kCancel.size()) : "";
  if (!id.empty() && service.responses().cancel(id)) {
    return reply_json(*call.exchange, {{"id", id}, {"object", "response"}, {"status", "cancelled"}});
  }
  reply_error(*call.exchange, 404, "No response \"" + printable(id) + "\" is under way.",
              "invalid_request_error");
}

}  // namespace doppler::server
