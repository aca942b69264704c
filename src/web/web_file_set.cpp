#include "web/web_file_set.h"

#include "base/host_web.h"
#include "base/json.h"

namespace doppler::web {
namespace {

// Answers {"file": number, "size": bytes, "name": for messages}, or kNotThere.
// set: WebFiles::set.
DP_HOST_IMPORT("dp_file_open")
void host_file_open(uint32_t ticket, uint32_t set, const char* name, uint32_t name_bytes);
DP_HOST_IMPORT("dp_file_read")
void host_file_read(uint32_t ticket, uint32_t file, double offset, uint32_t bytes);
DP_HOST_IMPORT("dp_file_close") void host_file_close(uint32_t file);

class WebSource final : public formats::ByteSource {
 public:
  WebSource(std::string name, uint32_t file, uint64_t size)
      : name_(std::move(name)), file_(file), size_(size) {}
  ~WebSource() override { host_file_close(file_); }
  WebSource(const WebSource&) = delete;
  WebSource& operator=(const WebSource&) = delete;

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return size_; }
  std::optional<uint32_t> stream_id() const override { return file_; }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    const HostCall call;
    host_file_read(call.ticket(), file_, static_cast<double>(offset), static_cast<uint32_t>(count));
    HostAnswer answer = co_await call.answer();
    if (!answer.ok())
      co_return fail(ErrorKind::kIo, "Cannot read %s: %s", name_.c_str(), answer.text().c_str());
    if (answer.bytes.size() != count) {
      co_return fail(ErrorKind::kIo, "%s gave %zu bytes where %llu were asked for.", name_.c_str(),
                     answer.bytes.size(), static_cast<unsigned long long>(count));
    }
    co_return std::move(answer.bytes);
  }

 private:
  std::string name_;
  uint32_t file_;
  uint64_t size_;
};

class WebFileSet final : public formats::FileSet {
 public:
  explicit WebFileSet(WebFiles files) : files_(std::move(files)) {}

  const std::string& root() const override { return files_.root; }
  const std::string& main_file() const override { return files_.main_file; }
  std::vector<std::string> list() const override { return files_.names; }
  Task<Result<std::unique_ptr<formats::ByteSource>>> open(std::string name) override {
    if (!formats::is_name_in_folder(name)) {
      co_return fail(ErrorKind::kInvalidInput, "\"%s\" is not a plain file name, so it is not opened in %s.",
                     printable(name).c_str(), files_.root.c_str());
    }
    const HostCall call;
    host_file_open(call.ticket(), files_.set, name.data(), static_cast<uint32_t>(name.size()));
    const HostAnswer answer = co_await call.answer();
    if (answer.status == HostStatus::kNotThere) co_return std::unique_ptr<formats::ByteSource>();
    if (!answer.ok()) co_return fail(ErrorKind::kIo, "%s", answer.text().c_str());
    DP_CO_TRY(const Json opened, parse_json(answer.text(), "the host's description of a file"));
    DP_CO_TRY(const auto file, get_integer(opened, "file"));
    DP_CO_TRY(const auto size, get_integer(opened, "size"));
    DP_CO_TRY(auto shown, get_string(opened, "name"));
    co_return std::unique_ptr<formats::ByteSource>(
        std::make_unique<WebSource>(shown.value_or(name), static_cast<uint32_t>(file.value_or(0)),
                                    static_cast<uint64_t>(size.value_or(0))));
  }

 private:
  WebFiles files_;
};

}  // namespace

std::unique_ptr<formats::FileSet> make_web_file_set(WebFiles files) {
  return std::make_unique<WebFileSet>(std::move(files));
}

}  // namespace doppler::web
