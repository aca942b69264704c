// Reads a request to the server, from any API: bodies of other APIs are made OpenAI bodies first (src/server/apis).
// Unlike a batch (completion_request.h), a server ignores fields that it does not know, and names them. It refuses
// fields that ask for a missing feature, since an answer that quietly lacks the feature would be worse. Read next:
// answer_writer.h, the way back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "openai/chat_fields.h"
#include "openai/completion_request.h"
#include "openai/lora_fields.h"

namespace doppler::openai {

inline constexpr uint32_t kMaxPrompts = 64;
inline constexpr uint32_t kMostChunkTokens = 256;  // GenerateOptions::batch

// The facts that are told beside the answer.
struct Told {
  bool usage = false;     // in a last chunk of a stream
  bool timings = false;   // in each chunk of a stream, and in a whole answer
  bool progress = false;  // while the prompt of a stream is evaluated
};

// OpenAI's `service_tier` as Request::priority. Lines of batches have 0.
inline constexpr int32_t kFlexTier = 2, kDefaultTier = 4, kPriorityTier = 7;

struct ServedRequest {
  using Prompt = std::variant<std::string, std::vector<int32_t>>;

  Endpoint endpoint = Endpoint::kChatCompletions;
  std::string model;  // empty: the default one
  ChatFields chat;
  std::vector<Prompt> prompts;  // of a completion
  GenerateOptions options;
  enum class Seed : uint8_t { kUnsaid, kRandom, kGiven } seed = Seed::kUnsaid;
  bool says_min_tokens = false;  // false: options has a default
  uint32_t choices = 1;          // of each prompt
  bool is_streamed = false, echoes = false;
  bool caches_prompt = true;  // Request::cache_prompt
  int32_t priority = kDefaultTier;
  Told told;
  std::string client;                          // who asks, as the client says ("user")
  std::optional<std::vector<LoraScale>> lora;  // adapters by number; no value: not in the body
  // The server sets these from `lora`, or from the name in `model` if an adapter has it: that name, and the files of
  // the adapters in options.adapters.
  std::string adapter;
  std::vector<AdapterFile> adapter_files;
  std::vector<std::string> ignored;  // fields that are not known
};

// Errors: kInvalidInput or kUnsupported, naming the field.
Result<ServedRequest> read_served(Endpoint endpoint, const Json& body, const GenerateOptions& defaults);

// The field that the sentence of such an error names; empty: none.
std::string field_of(std::string_view sentence);

}  // namespace doppler::openai
