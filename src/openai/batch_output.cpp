#include "openai/batch_output.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/sha256.h"
#include "openai/line_reader.h"

namespace doppler::openai {

Result<BatchOutput> BatchOutput::open(const std::string& path) {
  OpenFile file = OpenFile::open(
      path,
      {.reads = false, .writes = true, .makes = true, .appends = true, .readers = FileReaders::kAsUserSet});
  if (!file) return fail(ErrorKind::kIo, "Cannot write to %s: %s.", path.c_str(), std::strerror(errno));
  BatchOutput out(std::move(file), path);
  if (!out.file_.lock()) {
    return fail(ErrorKind::kIo, "Another program writes to %s now.", path.c_str());
  }
  DP_CHECK(out.read_earlier());
  return out;
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
      if (file_.resize(line->begin)) return {};
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
  if (file_.write(line)) return {};
  return fail(ErrorKind::kIo, "Cannot write to %s: %s.", path_.c_str(), std::strerror(errno));
}

Result<void> BatchOutput::sync() {
  if (file_.flush()) return {};
  return fail(ErrorKind::kIo, "Cannot write to %s: %s.", path_.c_str(), std::strerror(errno));
}

}  // namespace doppler::openai
