// The meaning of a request's path inside the served folder, and the answer that the request's conditions call for. No
// sockets here; file_server.cpp sends what this decides.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/files.h"
#include "store/http_headers.h"

namespace doppler::store {

// The folder as it really is, without links.
Result<std::string> served_root(const std::string& folder);

struct ServedFile {
  File file;
  uint64_t bytes = 0;
  std::string etag;           // strong: changes with size, time or inode
  std::string last_modified;  // an HTTP date
  const char* content_type = "";
};
// Nothing: there is no such file, it may not be served (hidden, unfinished, a folder), or it lies outside. Links are
// followed as long as they stay inside.
std::optional<ServedFile> open_served(const std::string& root, std::string_view request_path);

struct Conditions {
  std::string_view range, if_range, if_none_match, if_modified_since;  // empty: absent
};
struct Answer {
  int status = 200;  // 200, 206, 304, 416
  ByteRange range;   // of 206
};
Answer answer_for(const ServedFile& file, const Conditions& conditions);

}  // namespace doppler::store
