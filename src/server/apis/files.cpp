// OpenAI's files: what batches read and write.
#include <cstdio>

#include "base/file.h"
#include "base/text.h"
#include "server/apis/listing.h"
#include "server/multipart.h"
#include "server/routes.h"

namespace doppler::server {
namespace {

constexpr std::string_view kContent = "/content";
constexpr const char* kPurpose = "batch";
constexpr size_t kMostNameBytes = 255;

void reply_no_file(Exchange& exchange, const std::string& id) {
  reply_error(exchange, 404, "File \"" + printable(id) + "\" is not kept here.", "invalid_request_error");
}

Result<StoredFile> upload(Service& service, const Exchange& exchange) {
  const HttpRequest& request = exchange.request();
  DP_TRY(const std::vector<FormPart> parts, read_form(request.field("content-type"), request.body));
  const FormPart* file = nullptr;
  std::string purpose;
  for (const FormPart& part : parts) {
    if (part.name == "file") file = &part;
    if (part.name == "purpose") purpose = part.content;
  }
  if (!file) return fail(ErrorKind::kInvalidInput, "Field \"file\" is missing.");
  if (purpose != kPurpose) {
    return fail(ErrorKind::kInvalidInput, "Field \"purpose\" is \"%s\"; allowed is %s.",
                printable(purpose).c_str(), kPurpose);
  }
  return service.files().put(file->content, file->filename.substr(0, kMostNameBytes), purpose);
}

// A file on its way to a client: memory holds only the part that the client has yet to take.
class FileAnswer : public std::enable_shared_from_this<FileAnswer> {
 public:
  FileAnswer(std::shared_ptr<Exchange> exchange, std::FILE* file)
      : exchange_(std::move(exchange)), file_(file, std::fclose) {}

  void begin(Worker& worker) {
    exchange_->begin(200, "application/octet-stream");
    exchange_->on_drained([self = shared_from_this(), &worker] { worker.post([self] { self->pump(); }); });
    worker.post([self = shared_from_this()] { self->pump(); });
  }

 private:
  static constexpr size_t kPieceBytes = 64 << 10;

  // Only on the worker's thread.
  void pump() {
    std::string piece;
    while (file_ && !exchange_->is_congested() && !exchange_->is_gone()) {
      piece.resize(kPieceBytes);
      piece.resize(std::fread(piece.data(), 1, piece.size(), file_.get()));
      exchange_->write(piece);
      if (piece.size() == kPieceBytes) continue;
      file_.reset();
      exchange_->end();
    }
  }

  const std::shared_ptr<Exchange> exchange_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace

// Writing to the disk does not hold up the body of another request.
void answer_upload(Service& service, const Call& call) {
  service.file_worker().post([&service, exchange = call.exchange] {
    const auto file = upload(service, *exchange);
    if (file) return reply_json(*exchange, file->json());
    if (file.error().kind() != ErrorKind::kOutOfMemory) return reply_error(*exchange, file.error());
    reply_error(*exchange, 413, file.error().sentence(), "invalid_request_error");
  });
}

void answer_files(Service& service, const Call& call) {
  const auto purpose = query_value(call.exchange->request().query, "purpose");
  std::vector<Json> files;
  for (const StoredFile& file : service.files().list()) {
    if (!purpose || file.purpose == *purpose) files.push_back(file.json());
  }
  reply_listing(*call.exchange, std::move(files));
}

// GET /v1/files/ID and /v1/files/ID/content
void answer_file(Service& service, const Call& call) {
  const bool wants_content = call.rest.ends_with(kContent);
  const std::string id = wants_content ? call.rest.substr(0, call.rest.size() - kContent.size()) : call.rest;
  const auto file = service.files().get(id);
  if (!file) return reply_no_file(*call.exchange, id);
  if (!wants_content) return reply_json(*call.exchange, file->json());
  std::FILE* opened = open_stdio(service.files().path_of(*file), "rb");
  if (!opened) return reply_no_file(*call.exchange, id);
  std::make_shared<FileAnswer>(call.exchange, opened)->begin(service.file_worker());
}

void answer_delete_file(Service& service, const Call& call) {
  if (!service.files().remove(call.rest)) return reply_no_file(*call.exchange, call.rest);
  reply_json(*call.exchange, {{"id", call.rest}, {"object", "file"}, {"deleted", true}});
}

}  // namespace doppler::server
