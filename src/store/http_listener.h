// A small HTTP/1.1 server: connections, heads of requests, limits and answers. It has one thread and libevent, so
// thousands of slow readers cost no threads. Files go from the disk to the socket by sendfile. The caller gives the
// answers (file_server.h).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/answer_head.h"
#include "store/files.h"
#include "store/request_head.h"

namespace doppler::store {

struct ListenOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  // The most connections at once, from accept on. There are fewer if this process may not have so many open files. One
  // more takes the place of the oldest that waits for a request. If answers are under way on all, it waits.
  uint32_t most_connections = 256;
  // The time for the whole head of a request, and for an answer of which the other side takes no byte.
  uint32_t timeout_seconds = 30;
  uint64_t upload_bytes_per_second = 0;  // of all connections together; 0: no limit
  // Null: SIGINT and SIGTERM end run(). Otherwise only this ends it, within a tenth of a second and without grace.
  const std::atomic<bool>* stop = nullptr;
};

struct FilePart {
  File file;
  uint64_t first = 0, count = 0;
};

// The listener adds Content-Length. A reply without text and part has none (204, 304).
struct Reply {
  AnswerHead fields;
  std::optional<std::string> text = {};
  std::optional<FilePart> part = {};
};
Reply text_reply(AnswerHead fields, std::string sentence);

class HttpListener {
 public:
  using Answerer = std::function<Reply(const RequestHead&)>;
  // The listener listens from here on, and the thread in run() answers. Error: the address is taken or not allowed.
  static Result<std::unique_ptr<HttpListener>> open(ListenOptions options, Answerer answer);
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8080/"
  // Runs until the end that the options name. The first signal gives answers under way a few seconds to end, the second
  // one does not.
  Result<void> run();

 private:
  struct State;
  explicit HttpListener(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace doppler::store
