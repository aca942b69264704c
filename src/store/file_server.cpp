#include "store/file_server.h"

#include "base/text.h"
#include "store/served_file.h"

namespace doppler::store {
namespace {

class FolderAnswers {
 public:
  FolderAnswers(std::string root, std::string origin, std::string index)
      : root_(std::move(root)), origin_(std::move(origin)), index_(std::move(index)) {}
  Reply answer(const RequestHead& head) const;

 private:
  AnswerHead fields_of(int status) const;
  std::string root_, origin_, index_;
};

AnswerHead FolderAnswers::fields_of(int status) const {
  AnswerHead fields(status);
  fields.set("X-Content-Type-Options", "nosniff");
  if (origin_.empty()) {
    fields.set("Cross-Origin-Resource-Policy", "same-origin");
    return fields;
  }
  fields.set("Access-Control-Allow-Origin", origin_);
  fields.set("Access-Control-Expose-Headers",
             "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified");
  fields.set("Cross-Origin-Resource-Policy", origin_ == "*" ? "cross-origin" : "same-site");
  if (origin_ != "*") fields.set("Vary", "Origin");
  return fields;
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
  if (path.ends_with('/')) path += index_;
  auto file = open_served(root_, path);
  if (!file) return text_reply(fields_of(404), "There is no such file.\n");
  const Answer result = answer_for(*file, {.range = head.field("range"),
                                           .if_range = head.field("if-range"),
                                           .if_none_match = head.field("if-none-match"),
                                           .if_modified_since = head.field("if-modified-since")});
  AnswerHead fields = fields_of(result.status);
  fields.set("ETag", file->etag);
  fields.set("Last-Modified", file->last_modified);
  fields.set("Accept-Ranges", "bytes");
  fields.set("Cache-Control", "no-cache");  // kept, and asked about with its ETag before it is used
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
  FolderAnswers folder(std::move(root), std::move(options.origin), std::move(options.index));
  return HttpListener::open(std::move(options.listen), [folder = std::move(folder)](const RequestHead& head) {
    return folder.answer(head);
  });
}

}  // namespace doppler::store
