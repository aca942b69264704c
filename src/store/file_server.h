// `doppler serve-models` and `doppler web`: a folder over HTTP/1.1, read only: range requests, conditions, CORS, HEAD.
// Read next: served_file.h, http_listener.h.
#pragma once

#include <memory>
#include <string>

#include "store/http_listener.h"

namespace doppler::store {

struct ServeOptions {
  std::string folder;
  ListenOptions listen;
  std::string origin = "*";  // whose pages may read (CORS); empty: only the served ones
  bool gives_gzip = false;   // FILE.gz for FILE, to who takes it so and asks for no range
  std::string index;         // the file that answers for a folder ("index.html"); empty: none
};

// Errors: no such folder, the address is taken or not allowed.
Result<std::unique_ptr<HttpListener>> open_file_server(ServeOptions options);

}  // namespace doppler::store
