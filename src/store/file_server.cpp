#include "store/file_server.h"

#include "base/text.h"
#include "store/served_file.h"

namespace doppler::store {
namespace {

class FolderAnswers {
 public:
  // It does not use `options.listen`.
  FolderAnswers(std::string root, ServeOptions options)
      : root_(std::move(root)), options_(std::move(options)) {}
  Reply answer(const RequestHead& head) const;

 private:
  AnswerHead fields_of(int status) const;
  std::string root_;
  ServeOptions options_;
};

AnswerHead FolderAnswers::fields_of(int status) const {
  AnswerHead fields(status);
  fields.set("X-Content-Type-Options", "nosniff");
  if (options_.origin.empty()) {
    fields.set("Cross-Origin-Resource-Policy", "same-origin");
    return fields;
  }
  fields.set("Access-Control-Allow-Origin", options_.origin);
  fields.set("Access-Control-Expose-Headers",
             "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified");
  fields.set("Cross-Origin-Resource-Policy", options_.origin == "*" ? "cross-origin" : "same-site");
  if (options_.origin != "*") fields.set("Vary", "Origin");
  return fields;
}

// Reads the header Accept-Encoding, such as "br, gzip;q=0.8".
bool accepts_gzip(std::string_view encodings) {
  for (const std::string& entry : split(encodings, ',')) {
    const std::vector<std::string> parts = split(entry, ';');
    const std::string_view weight = parts.size() > 1 ? trim(parts[1]) : "";
    if (trim(parts[0]) == "gzip") return weight.find_first_not_of("q=0.") != weight.npos || weight.empty();
  }
  return false;
}

Reply part_of(ServedFile& file, const Answer& answer, AnswerHead fields) {
  const uint64_t first = answer.status == 206 ? answer.range.first : 0;
  const uint64_t count = answer.status == 206 ? answer.range.count() : file.bytes;
  fields.set("Content-Type", file.content_type);
  if (answer.status == 206) fields.set("Content-Range", content_range(answer.range, file.bytes));
  return {.fields = std::move(fields),
          .part = FilePart{.file = std::move(file.file), .first = first, .count = count}};
}

Reply FolderAnswers::answer(const RequestHead& head) const {
  if (head.method == "OPTIONS") {
    AnswerHead fields = fields_of(204);
    fields.set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS");
    fields.set("Access-Control-Allow-Headers", "Range, If-Range, If-None-Match, If-Modified-Since");
    fields.set("Access-Control-Max-Age", "86400");
    return {.fields = std::move(fields)};
  }
  if (head.method != "GET" && head.method != "HEAD") {
    AnswerHead fields = fields_of(405);
    fields.set("Allow", "GET, HEAD, OPTIONS");
    return text_reply(std::move(fields), "Only GET, HEAD and OPTIONS are answered.\n");
  }
  std::string path = head.path;
  if (path.ends_with('/')) path += options_.index;
  auto file = open_served(root_, path);
  if (!file) return text_reply(fields_of(404), "There is no such file.\n");
  bool is_gzip = false;
  if (options_.gives_gzip && head.field("range").empty() && accepts_gzip(head.field("accept-encoding"))) {
    if (auto packed = open_served(root_, path + ".gz")) {
      packed->content_type = file->content_type;
      file = std::move(packed);
      is_gzip = true;
    }
  }
  const Answer result = answer_for(*file, {.range = head.field("range"),
                                           .if_range = head.field("if-range"),
                                           .if_none_match = head.field("if-none-match"),
                                           .if_modified_since = head.field("if-modified-since")});
  AnswerHead fields = fields_of(result.status);
  fields.set("ETag", file->etag);
  fields.set("Last-Modified", file->last_modified);
  fields.set("Accept-Ranges", "bytes");
  if (options_.gives_gzip) fields.set("Vary", "Accept-Encoding");
  if (is_gzip) fields.set("Content-Encoding", "gzip");
  fields.set("Cache-Control", "no-cache");  // browsers keep it, and ask with its ETag before each use
  if (result.status == 304) return {.fields = std::move(fields)};
  if (result.status == 416) {
    fields.set("Content-Range", format_text("bytes */%llu", static_cast<unsigned long long>(file->bytes)));
    return text_reply(std::move(fields), "The file has no such bytes.\n");
  }
  return part_of(*file, result, std::move(fields));
}

}  // namespace

Result<std::unique_ptr<HttpListener>> open_file_server(ServeOptions options) {
  DP_TRY(std::string root, served_root(options.folder));
  ListenOptions listen = std::move(options.listen);
  FolderAnswers folder(std::move(root), std::move(options));
  return HttpListener::open(std::move(listen), [folder = std::move(folder)](const RequestHead& head) {
    return folder.answer(head);
  });
}

}  // namespace doppler::store
