// A model's files as the JavaScript host has them: addresses, or in Node paths. Headers are read into memory
// here; weights go from the host to the GPU by ByteSource::stream_id(). The other side: web/files_http.mjs,
// web/files_node.mjs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/source.h"

namespace doppler::web {

struct WebFiles {
  std::string root;                // what the user named, for messages
  std::string main_file;           // empty: a folder was named
  std::vector<std::string> names;  // in the folder, if the host can tell
  uint32_t set = 0;                // the host's number of the file set; 0: the model's
};
std::unique_ptr<formats::FileSet> make_web_file_set(WebFiles files);

}  // namespace doppler::web
