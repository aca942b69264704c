// Bodies of OpenAI's Responses as bodies of its chats.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "server/apis/responses_store.h"

namespace doppler::server {

struct ResponsesRequest {
  Json chat;          // the body of a chat
  Json conversation;  // its messages without the instructions, which later answers do not get
  Json shown;         // fields that the answer repeats
  Json items;         // the input as items, each with an id
  std::vector<std::string> ignored = {};  // fields that are not known
  bool is_stored = true;
};
// `id`: the answer's id without its prefix. Errors: kInvalidInput or kUnsupported, naming the field.
Result<ResponsesRequest> read_responses(const Json& body, const std::string& id, const ResponsesStore& store);

}  // namespace doppler::server
