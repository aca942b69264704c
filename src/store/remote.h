// One address at a time, with redirects followed and passing failures tried again: what a file is before it is
// downloaded (probe), and small texts (a manifest, an answer of an API). Read next: download.h.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "base/sha256.h"
#include "store/http_client.h"
#include "store/retry.h"

namespace doppler::store {

struct WebOptions {
  HttpTimes times;
  uint32_t retries = 5;      // in a row, without progress
  std::string token;         // sent only to token_origin
  std::string token_origin;  // "https://huggingface.co"
  const std::atomic<bool>* stop = nullptr;
};

// The target of an address.
struct Remote {
  std::string url;                // after all redirects
  std::optional<uint64_t> bytes;  // empty: the server does not tell
  bool takes_ranges = false;
  std::string validator;         // for If-Range: a strong entity tag, else the date; empty: neither
  std::optional<Sha256> sha256;  // as a Hugging Face server tells it for large files
};

class Web {
 public:
  explicit Web(WebOptions options) : options_(std::move(options)) {}

  Result<Remote> probe(const std::string& url);
  // Error also: longer than most_bytes.
  Result<std::string> text(const std::string& url, uint64_t most_bytes);

  HttpClient& client() { return *client_; }  // only after a call of one of the two
  const WebOptions& options() const { return options_; }
  // The token, if this address may see it.
  std::string bearer_for(const std::string& url) const;

 private:
  // Runs one request to its end, through redirects and retries. `request.url` becomes the last address.
  template <class Last>
  Result<void> fetch(Request& request, Last& last);

  WebOptions options_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace doppler::store
