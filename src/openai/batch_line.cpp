#include "openai/batch_line.h"

#include <algorithm>
#include <cstring>

#include "base/json.h"
#include "base/sha256.h"

namespace doppler::openai {
namespace {

constexpr std::string_view kIdPrefix = "batch_req_";
constexpr std::string_view kBatchLineOpening = R"({"id":"batch_req_)";  // as to_text() writes it

uint64_t seed_of(std::string_view custom_id) {
  const Sha256 digest = sha256(text_bytes(custom_id));
  uint64_t seed = 0;
  std::memcpy(&seed, digest.data(), sizeof seed);
  return seed;
}

Result<std::string> read_custom_id(const Json& line) {
  if (!line.is_object()) {
    return fail(ErrorKind::kInvalidInput, "The line must be an object, but it is %s.",
                printable(to_text(line)).c_str());
  }
  DP_TRY(auto custom_id, get_string(line, "custom_id"));
  if (custom_id && !custom_id->empty()) return std::move(*custom_id);
  return fail(ErrorKind::kInvalidInput, "Field \"custom_id\" is %s; a text is needed that no other line has.",
              custom_id ? "empty" : "missing");
}

Result<void> check_members(const Json& line) {
  static constexpr std::string_view kMembers[] = {"custom_id", "method", "url", "body"};
  for (const auto& member : line.items()) {
    if (std::ranges::count(kMembers, member.key) > 0) continue;
    return fail(ErrorKind::kInvalidInput,
                "Field \"%s\" does not belong to a line; allowed are custom_id, method, url and body.",
                printable(member.key).c_str());
  }
  return {};
}

// A line may leave out its method, and its URL where the body says what it is.
Result<CompletionRequest> read_request(const Json& line, const GenerateOptions& defaults) {
  DP_CHECK(check_members(line));
  DP_TRY(const auto method, get_string(line, "method"));
  if (method && method != "POST") {
    return fail(ErrorKind::kInvalidInput, "Field \"method\" is \"%s\"; allowed is POST.",
                printable(*method).c_str());
  }
  DP_TRY(const auto url, get_string(line, "url"));
  if (url && url != kChatPath && url != kCompletionsPath) {
    return fail(ErrorKind::kInvalidInput, "Field \"url\" is \"%s\"; allowed are %s and %s.",
                printable(*url).c_str(), kChatPath, kCompletionsPath);
  }
  const Json* body = find(line, "body");
  if (!body) return fail(ErrorKind::kInvalidInput, "Field \"body\" is missing.");
  const bool is_chat = url ? url == kChatPath : find(*body, "messages") != nullptr;
  return read_completion(is_chat ? Endpoint::kChatCompletions : Endpoint::kCompletions, *body, defaults);
}

// The four members of a line, in their order.
std::string line_text(uint64_t number, const std::optional<std::string>& custom_id, Json response,
                      Json error) {
  const Json line = {{"id", std::string(kIdPrefix) + std::to_string(number)},
                     {"custom_id", custom_id ? Json(*custom_id) : Json()},
                     {"response", std::move(response)},
                     {"error", std::move(error)}};
  return to_text(line) + "\n";
}

}  // namespace

BatchLine parse_batch_line(std::string_view text, uint64_t number, const GenerateOptions& defaults) {
  BatchLine out{.number = number, .custom_id = {}, .completion = CompletionRequest{}};
  const auto line = parse_json(text, "The line");
  if (!line) {
    out.completion = forward(line.error());
    return out;
  }
  auto custom_id = read_custom_id(*line);
  if (!custom_id) {
    out.completion = forward(custom_id.error());
    return out;
  }
  out.custom_id = std::move(*custom_id);
  GenerateOptions options = defaults;
  options.sampling.seed += seed_of(*out.custom_id);
  out.completion = read_request(*line, options);
  return out;
}

std::string answer_line(uint64_t number, const std::string& custom_id, const Json& body) {
  return line_text(number, custom_id,
                   {{"status_code", 200}, {"request_id", "req_" + std::to_string(number)}, {"body", body}},
                   Json());
}

std::string error_line(uint64_t number, const std::optional<std::string>& custom_id, const std::string& code,
                       const std::string& message) {
  return line_text(number, custom_id, Json(), {{"code", code}, {"message", message}});
}

std::string error_line(const BatchLine& line, const Error& error) {
  const bool unsupported = error.kind() == ErrorKind::kUnsupported;
  return error_line(
      line.number, line.custom_id, unsupported ? kUnsupportedRequest : kInvalidRequest,
      format_text("Line %llu: ", static_cast<unsigned long long>(line.number)) + error.message());
}

Result<WrittenLine> parse_written_line(std::string_view text) {
  DP_TRY(const Json line, parse_json(text, "The line"));
  DP_TRY(const auto id, get_string(line, "id"));
  DP_TRY(const auto custom_id, get_string(line, "custom_id"));
  const Json* response = find(line, "response");
  const Json* error = find(line, "error");
  const auto number = id && id->starts_with(kIdPrefix)
                          ? parse_int(std::string_view(*id).substr(kIdPrefix.size()))
                          : std::nullopt;
  if (!number || *number < 1 || !response || !error || response->is_object() == error->is_object()) {
    return fail(ErrorKind::kInvalidInput, "The line is no answer of a batch.");
  }
  WrittenLine out{.number = static_cast<uint64_t>(*number), .custom_id = custom_id, .error_code = {}};
  if (error->is_object()) {
    DP_TRY(const auto code, get_string(*error, "code"));
    out.error_code = code.value_or(kInvalidRequest);
  } else if (!custom_id) {
    return fail(ErrorKind::kInvalidInput, "The line has an answer, but no \"custom_id\".");
  }
  return out;
}

bool may_begin_line(std::string_view torn) {
  const size_t common = std::min(torn.size(), kBatchLineOpening.size());
  return torn.substr(0, common) == kBatchLineOpening.substr(0, common);
}

}  // namespace doppler::openai
