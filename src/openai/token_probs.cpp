#include "openai/token_probs.h"

#include <algorithm>

#include "base/json.h"
#include "openai/generate_fields.h"

namespace doppler::openai {
namespace {

uint64_t characters(std::string_view text) {
  const auto begins = [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; };
  return static_cast<uint64_t>(std::ranges::count_if(text, begins));
}

Json chat_item(const std::string& text, float logprob) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<uint8_t>(c));
  return {{"token", text}, {"logprob", logprob}, {"bytes", std::move(bytes)}};
}

Json chat_logprobs(std::span<const ToldToken> tokens) {
  Json content = Json::array();
  for (const ToldToken& token : tokens) {
    Json item = chat_item(token.text, token.logprob);
    item["top_logprobs"] = Json::array();
    for (const auto& [text, logprob] : token.top) item["top_logprobs"].push_back(chat_item(text, logprob));
    content.push_back(std::move(item));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// Keys of an object are text, so that two tokens which are half characters may share one.
Json completion_logprobs(std::span<const ToldToken> tokens) {
  Json texts = Json::array(), logprobs = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const ToldToken& token : tokens) {
    Json top = Json::object();
    for (const auto& [text, logprob] : token.top) top[text] = logprob;
    top[token.text] = token.logprob;
    texts.push_back(token.text);
    logprobs.push_back(token.logprob);
    tops.push_back(std::move(top));
    offsets.push_back(token.offset);
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

}  // namespace

Result<void> read_logprobs(Endpoint endpoint, const Json& body, GenerateOptions* options) {
  const Json* count = find(body, "logprobs");
  if (endpoint == Endpoint::kCompletions) {
    const Json* top = find(body, "top_logprobs");
    if (top && !top->is_null() && *top != Json(0)) {
      return fail(ErrorKind::kInvalidInput,
                  "Field \"top_logprobs\" is %s; a completion says their number in \"logprobs\".",
                  printable(to_text(*top)).c_str());
    }
    if (!count || count->is_null() || *count == Json(false)) return {};
    options->logprobs = true;
    return read_count(body, "logprobs", 0, kMaxTopLogprobs, &options->top_logprobs);
  }
  DP_TRY(const auto is_asked, get_bool(body, "logprobs"));
  if (is_asked) options->logprobs = *is_asked;
  DP_CHECK(read_count(body, "top_logprobs", 0, kMaxTopLogprobs, &options->top_logprobs));
  if (options->top_logprobs == 0 || options->logprobs) return {};
  return fail(ErrorKind::kInvalidInput,
              "Field \"top_logprobs\" is %u, which needs \"logprobs\": true beside it.",
              options->top_logprobs);
}

void tell_tokens(const Generation& generation, const TokenText& text_of, std::vector<ToldToken>* out) {
  const size_t ends = generation.stop == StopReason::kEndOfText ? 1 : 0;
  for (size_t i = out->size(); i + ends < generation.logprobs.size(); ++i) {
    const TokenLogprobs& given = generation.logprobs[i];
    ToldToken token{.text = text_of(generation.tokens[i]), .logprob = given.logprob, .top = {}};
    for (const auto& [id, logprob] : given.top) token.top.emplace_back(text_of(id), logprob);
    if (!out->empty()) token.offset = out->back().offset + characters(out->back().text);
    out->push_back(std::move(token));
  }
}

Json logprobs_json(Endpoint endpoint, std::span<const ToldToken> tokens) {
  if (tokens.empty()) return nullptr;
  return endpoint == Endpoint::kChatCompletions ? chat_logprobs(tokens) : completion_logprobs(tokens);
}

}  // namespace doppler::openai
