// `doppler serve-models` and `doppler web`: a folder over HTTP/1.1, read only: range requests, conditions, CORS, HEAD. One
// thread and libevent: thousands of slow readers cost no threads, and files go from the disk to the socket by sendfile.
// Read next: file_reply.h.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace doppler::store {

struct ServeOptions {
  std::string folder;
  std::string host = "127.0.0.1";
  uint16_t port = 0;         // 0: any free one
  std::string origin = "*";  // the origin whose pages may read (CORS); empty: only the served pages
  bool gives_gzip = false;   // FILE.gz for FILE, to who takes it so and asks for no range
  std::string index;         // the file that answers for a folder ("index.html"); empty: none
  // At once, from accept on; fewer where this process may not have so many open files. One more takes the place of the
  // oldest that waits for a request, or waits itself while all have answers under way.
  uint32_t most_connections = 256;
  uint32_t timeout_seconds =
      30;  // for the whole head of a request, and for an answer whose reader takes no byte
};

class FileServer {
 public:
  // Listens already; requests are answered in run(). Errors: no such folder, the address is taken or not allowed.
  static Result<std::unique_ptr<FileServer>> open(ServeOptions options);
  ~FileServer();
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8080/"
  // Until SIGINT or SIGTERM: the first one lets answers under way end (a few seconds), the second one does not.
  Result<void> run();

 private:
  struct State;
  explicit FileServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace doppler::store
