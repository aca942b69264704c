// One line of OpenAI's batch files: a request in, its answer or its error out. A line out ends with a line feed, its
// last byte, so that a line without one was torn.
//   in:  {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {...}}
//        {"custom_id": "a", "body": {...}}   (with "messages" a chat, otherwise a completion)
//   out: {"id": "batch_req_7", "custom_id": "a", "response": {"status_code", "request_id", "body"}, "error": null}
//        {"id": "batch_req_7", "custom_id": "a", "response": null, "error": {"code", "message"}}
// The number in `id` is that of the line in the file, from 1.
// Read next: completion_request.h (the body), batch_output.h (which lines are done already).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "openai/completion_request.h"

namespace doppler::openai {

inline constexpr const char* kInvalidRequest = "invalid_request";
inline constexpr const char* kUnsupportedRequest = "unsupported_request";
inline constexpr const char* kDuplicateId = "duplicate_custom_id";

// `custom_id` is there if the line has a usable one, whatever else is wrong.
struct BatchLine {
  uint64_t number = 0;
  std::optional<std::string> custom_id;
  Result<CompletionRequest> completion;
};
// A body without a seed gets one of its own: defaults.sampling.seed and a hash of the id. So lines with equal prompts
// differ, and in the lane exact a line gives the same text in whatever company.
BatchLine parse_batch_line(std::string_view text, uint64_t number, const GenerateOptions& defaults);

std::string answer_line(uint64_t number, const std::string& custom_id, const Json& body);
std::string error_line(uint64_t number, const std::optional<std::string>& custom_id, const std::string& code,
                       const std::string& message);
std::string error_line(const BatchLine& line, const Error& error);

// The facts that a written line states about its request.
struct WrittenLine {
  uint64_t number = 0;
  std::optional<std::string> custom_id;
  std::string error_code;  // empty: it has an answer
};
Result<WrittenLine> parse_written_line(std::string_view text);
// True if `torn` may be the beginning of such a line.
bool may_begin_line(std::string_view torn);

}  // namespace doppler::openai
