#include "store/file_reply.h"

#include <utility>

#include "base/text.h"

namespace doppler::store {
namespace {

// The header Accept-Encoding: "br, gzip;q=0.8".
bool accepts_gzip(std::string_view encodings) {
  for (const std::string& entry : split(encodings, ',')) {
    const std::vector<std::string> parts = split(entry, ';');
    const std::string_view weight = parts.size() > 1 ? trim(parts[1]) : "";
    if (trim(parts[0]) == "gzip") return weight.find_first_not_of("q=0.") != weight.npos || weight.empty();
  }
  return false;
}

AnswerHead head_of(int status, const std::string& origin) {
  AnswerHead head(status);
  head.set("X-Content-Type-Options", "nosniff");
  if (origin.empty()) {
    head.set("Cross-Origin-Resource-Policy", "same-origin");
    return head;
  }
  head.set("Access-Control-Allow-Origin", origin);
  head.set("Access-Control-Expose-Headers",
           "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified");
  head.set("Cross-Origin-Resource-Policy", origin == "*" ? "cross-origin" : "same-site");
  if (origin != "*") head.set("Vary", "Origin");
  return head;
}

FileReply methods_reply(AnswerHead head) {
  head.set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS");
  head.set("Access-Control-Allow-Headers", "Range, If-Range, If-None-Match, If-Modified-Since");
  head.set("Access-Control-Max-Age", "86400");
  return {.head = std::move(head), .text = {}, .file = {}};
}

FileReply bytes_reply(const RequestHead& request, AnswerHead head, const Answer& answer, ServedFile file) {
  const bool is_part = answer.status == 206;
  const uint64_t first = is_part ? answer.range.first : 0;
  const uint64_t count = is_part ? answer.range.count() : file.bytes;
  head.set("Content-Type", file.content_type);
  head.set("Content-Length", std::to_string(count));
  if (is_part) {
    head.set("Content-Range", format_text("bytes %llu-%llu/%llu", static_cast<unsigned long long>(first),
                                          static_cast<unsigned long long>(first + count - 1),
                                          static_cast<unsigned long long>(file.bytes)));
  }
  FileReply out{.head = std::move(head), .text = {}, .file = {}, .first = first, .count = count};
  if (request.method != "HEAD" && count > 0) out.file = std::move(file);
  return out;
}

}  // namespace

FileReply text_reply(const RequestHead& request, AnswerHead head, std::string sentence) {
  head.set("Content-Type", "text/plain; charset=utf-8");
  head.set("Content-Length", std::to_string(sentence.size()));
  if (request.method == "HEAD") sentence.clear();
  return {.head = std::move(head), .text = std::move(sentence), .file = {}};
}

FileReply reply_to(const RequestHead& request, const std::string& root, const ServeOptions& options) {
  if (request.method == "OPTIONS") return methods_reply(head_of(204, options.origin));
  if (request.method != "GET" && request.method != "HEAD") {
    AnswerHead head = head_of(405, options.origin);
    head.set("Allow", "GET, HEAD, OPTIONS");
    return text_reply(request, std::move(head), "Only GET, HEAD and OPTIONS are answered.\n");
  }
  std::string path = request.path;
  if (path.ends_with('/')) path += options.index;
  auto file = open_served(root, path);
  if (!file) return text_reply(request, head_of(404, options.origin), "There is no such file.\n");
  bool is_gzip = false;
  if (options.gives_gzip && request.field("range").empty() &&
      accepts_gzip(request.field("accept-encoding"))) {
    if (auto packed = open_served(root, path + ".gz")) {
      packed->content_type = file->content_type;
      file = std::move(packed);
      is_gzip = true;
    }
  }
  const Answer answer = answer_for(*file, {.range = request.field("range"),
                                           .if_range = request.field("if-range"),
                                           .if_none_match = request.field("if-none-match"),
                                           .if_modified_since = request.field("if-modified-since")});
  AnswerHead head = head_of(answer.status, options.origin);
  head.set("ETag", file->etag);
  head.set("Last-Modified", file->last_modified);
  head.set("Accept-Ranges", "bytes");
  if (options.gives_gzip) head.set("Vary", "Accept-Encoding");
  if (is_gzip) head.set("Content-Encoding", "gzip");
  head.set("Cache-Control", "no-cache");  // kept, and asked about with its ETag before it is used
  if (answer.status == 304) return {.head = std::move(head), .text = {}, .file = {}};
  if (answer.status == 416) {
    head.set("Content-Range", format_text("bytes */%llu", static_cast<unsigned long long>(file->bytes)));
    return text_reply(request, std::move(head), "The file has no such bytes.\n");
  }
  return bytes_reply(request, std::move(head), answer, std::move(*file));
}

}  // namespace doppler::store
