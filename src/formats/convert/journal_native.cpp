#include "formats/convert/journal_native.h"

#include <cerrno>
#include <cstring>

namespace doppler::formats {
namespace {

constexpr size_t kMaxBytes = 1 << 20;  // a line each half a second or 64 MB; longer ones are not ours

Unexpected failed(const std::string& path) {
  return fail(ErrorKind::kIo, "Cannot write %s: %s.", path.c_str(), std::strerror(errno));
}

// True if the locked file still has its name: another process may have finished and removed it in between.
bool still_named(const OpenFile& file, const std::string& path) {
  const auto ours = file.facts(), named = facts_of(path);
  return ours && named && ours->is_same_file(*named);
}

}  // namespace

Journal::Journal(std::string path, OpenFile file, const Sha256& conversion)
    : path_(std::move(path)), file_(std::move(file)), title_("doppler convert " + sha256_hex(conversion)) {}

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path, const Sha256& conversion) {
  OpenFile opened = OpenFile::open(path, {.writes = true, .makes = true, .appends = true});
  if (!opened) return failed(path);
  std::unique_ptr<Journal> journal(new Journal(path, std::move(opened), conversion));
  OpenFile& file = journal->file_;
  if (!file.lock() || !still_named(file, path)) {
    return fail(ErrorKind::kIo, "Another process is converting to the file of %s.", path.c_str());
  }
  std::string text(kMaxBytes, '\0');
  text.resize(file.read_at({reinterpret_cast<uint8_t*>(text.data()), text.size()}, 0).value_or(0));
  if (text.empty()) {
    DP_CHECK(journal->append(journal->title_));
    return journal;
  }
  // The last line may be half written: only lines with their end count.
  const std::vector<std::string> lines = split(text, '\n');
  if (lines.size() < 2 || lines[0] != journal->title_) {
    journal->was_of_another_ = true;
    DP_CHECK(journal->begin_anew());
    return journal;
  }
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    const auto tensors = parse_int(lines[i]);
    if (tensors && *tensors > 0) journal->done_ = static_cast<size_t>(*tensors);
  }
  // A half line must not become a part of the next one.
  if (!lines.back().empty()) DP_CHECK(journal->append(""));
  return journal;
}

Result<> Journal::append(const std::string& line) {
  return file_.write(line + "\n") && file_.flush_content() ? Result<>() : failed(path_);
}

Result<> Journal::begin_anew() {
  done_ = 0;
  if (!file_.resize(0)) return failed(path_);
  return append(title_);
}

Result<> Journal::add(size_t tensors_done) { return append(std::to_string(tensors_done)); }

void Journal::remove() { remove_file(path_); }

}  // namespace doppler::formats
