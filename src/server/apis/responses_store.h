// Answers of /v1/responses that later requests may go on from: in memory, the newest ones, gone with the server.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "base/json.h"

namespace doppler::server {

struct StoredResponse {
  Json body;      // the answer that was sent
  Json messages;  // the conversation with its answer, as OpenAI's chats have it
  Json items;     // its input
};

class ResponsesStore {
 public:
  void put(const std::string& id, StoredResponse response);
  std::optional<StoredResponse> get(const std::string& id) const;
  bool remove(const std::string& id);

  // Answers under way, by id: what cancels them.
  void begin(const std::string& id, std::function<void()> cancel);
  void end(const std::string& id);
  bool cancel(const std::string& id);

 private:
  static constexpr size_t kMostKept = 1024;

  mutable std::mutex mutex_;
  std::list<std::pair<std::string, StoredResponse>> kept_;  // the newest first
  std::list<std::pair<std::string, std::function<void()>>> running_;
};

}  // namespace doppler::server
