// Bodies of OpenAI's Responses as bodies of its chats.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "server/apis/responses_store.h"

namespace doppler::server {

struct ResponsesRequest {
  Json chat;          // the body of a chat
  Json conversation;  // its messages without the instructions, which do not go on
  Json shown;         // fields that the answer repeats
  bool is_stored = true;
};
// Errors: kInvalidInput or kUnsupported, naming the field.
Result<ResponsesRequest> read_responses(const Json& body, const ResponsesStore& store);

}  // namespace doppler::server
