#include "openai/batch_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/sha256.h"
#include "openai/line_reader.h"

namespace doppler::openai {

Result<BatchOutput> BatchOutput::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return fail(ErrorKind::kIo, "Cannot write to %s: %s.", path.c_str(), std::strerror(errno));
  BatchOutput out(file, path);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorKind::kIo, "Another program writes to %s now.", path.c_str());
  }
  DP_CHECK(out.read_earlier());
  return out;
}

BatchOutput::BatchOutput(BatchOutput&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      path_(std::move(other.path_)),
      ids_(std::move(other.ids_)),
      numbers_(std::move(other.numbers_)) {}

BatchOutput::~BatchOutput() {
  if (file_ >= 0) ::close(file_);
}

BatchOutput::Fingerprint BatchOutput::fingerprint(std::string_view custom_id) {
  const Sha256 digest = sha256(text_bytes(custom_id));
  Fingerprint print;
  std::memcpy(print.data(), digest.data(), sizeof print);
  return print;
}

Result<void> BatchOutput::read_earlier() {
  DP_TRY(LineReader reader, LineReader::open(path_));
  while (true) {
    DP_TRY(const auto line, reader.next());
    if (!line) return {};
    const auto written = line->is_whole ? parse_written_line(line->text) : WrittenLine{};
    if (!written || (!line->is_whole && !may_begin_line(line->text))) {
      return fail(ErrorKind::kInvalidInput,
                  "Line %llu of %s is no answer of a batch, so that file is left unchanged; name a new one.",
                  static_cast<unsigned long long>(line->number), path_.c_str());
    }
    if (!line->is_whole) {
      if (::ftruncate(file_, static_cast<off_t>(line->begin)) == 0) return {};
      return fail(ErrorKind::kIo, "Cannot cut off the torn last line of %s: %s.", path_.c_str(),
                  std::strerror(errno));
    }
    if (!written->custom_id || written->error_code == kDuplicateId) {
      numbers_.insert(written->number);
    } else {
      ids_.try_emplace(fingerprint(*written->custom_id), false);
    }
  }
}

BatchOutput::Claim BatchOutput::claim(uint64_t number, const std::optional<std::string>& custom_id) {
  if (!custom_id) return numbers_.contains(number) ? Claim::kDone : Claim::kNew;
  const auto [at, is_new] = ids_.try_emplace(fingerprint(*custom_id), true);
  if (is_new) return Claim::kNew;
  if (!std::exchange(at->second, true)) return Claim::kDone;
  return numbers_.contains(number) ? Claim::kDone : Claim::kDuplicate;
}

Result<void> BatchOutput::write(std::string_view line) {
  while (!line.empty()) {
    const ssize_t count = ::write(file_, line.data(), line.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return fail(ErrorKind::kIo, "Cannot write to %s: %s.", path_.c_str(), std::strerror(errno));
    line.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<void> BatchOutput::sync() {
  if (::fsync(file_) == 0 || errno == EINVAL) return {};
  return fail(ErrorKind::kIo, "Cannot write to %s: %s.", path_.c_str(), std::strerror(errno));
}

}  // namespace doppler::openai
