// The reply to a request for a file of the served folder: its head, and the text or the bytes of a file after it.
// No sockets; file_server.cpp sends it. Read next: served_file.h.
#pragma once

#include <optional>
#include <string>

#include "store/answer_head.h"
#include "store/file_server.h"
#include "store/request_head.h"
#include "store/served_file.h"

namespace doppler::store {

struct FileReply {
  AnswerHead head;
  std::string text;                // after the head
  std::optional<ServedFile> file;  // or so many bytes of it
  uint64_t first = 0, count = 0;
};

// A sentence; of a HEAD request its head alone.
FileReply text_reply(const RequestHead& request, AnswerHead head, std::string sentence);
FileReply reply_to(const RequestHead& request, const std::string& root, const ServeOptions& options);

}  // namespace doppler::store
