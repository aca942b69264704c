// "OUT.part" and "OUT.part.journal" until all is there. A line of the journal follows only after the bytes it speaks
// of have been flushed, so that neither a killed process nor a lost machine leaves a claim without bytes.
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/file.h"
#include "base/folders.h"
#include "formats/convert/journal_native.h"
#include "formats/convert/model_output.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kFlushBytes = 64 << 20;  // at most this much is done again after an interruption, or
constexpr auto kFlushTime = std::chrono::milliseconds(500);  // this long

class GgufOutput final : public ModelOutput {
 public:
  GgufOutput(GgufOutline& outline, OutputOptions options)
      : path_(std::move(options.path)),
        part_(path_ + ".part"),
        replace_(options.replace),
        header_(outline.header) {}

  Result<> open(const std::string& fingerprint) {
    const std::vector<uint8_t> head = header_.build();
    Sha256Hasher hasher;
    hasher.update(head);
    hasher.update(text_bytes(fingerprint));
    DP_TRY(journal_, Journal::open(part_ + ".journal", hasher.finish()));
    file_ = OpenFile::open(part_, kToReadAndWrite);
    const auto facts = file_ ? file_.facts() : std::nullopt;
    if (!facts) return failed(part_);
    const uint64_t there = facts->bytes;
    next_ = journal_->done();
    const auto& tensors = header_.tensors();
    if (next_ > tensors.size() || (next_ != 0 && there < end_of(next_ - 1))) {
      next_ = 0;
      DP_CHECK(journal_->begin_anew());
    }
    if (journal_->was_of_another() || (next_ == 0 && there != 0)) {
      note_ = part_ + " was left by " +
              (journal_->was_of_another() ? "another command" : "a run that had finished no tensor") +
              "; the conversion begins anew.";
    }
    resumed_ = next_ == 0 ? 0 : end_of(next_ - 1);
    if (!file_.resize(resumed_)) return failed(part_);
    position_ = 0;
    DP_CHECK(put(head));
    position_ = next_ < tensors.size() ? tensors[next_].offset : resumed_;
    flushed_at_ = std::chrono::steady_clock::now();
    return {};
  }

  size_t first_tensor() const override { return next_; }
  uint64_t resumed_bytes() const override { return resumed_; }
  const std::string& remains_note() const override { return note_; }

  Result<> begin_tensor(size_t tensor) override {
    if (tensor != next_)
      return fail(ErrorKind::kInternal, "Tensor %zu was begun, but %zu is next.", tensor, next_);
    position_ = header_.tensors()[tensor].offset;
    return {};
  }

  Result<> write(std::span<const uint8_t> bytes) override {
    const GgufTensor& tensor = header_.tensors()[next_];
    if (position_ + bytes.size() > tensor.offset + tensor.bytes) {
      return fail(ErrorKind::kInternal, "Tensor \"%s\" has %llu bytes, but more were written.",
                  tensor.name.c_str(), static_cast<unsigned long long>(tensor.bytes));
    }
    return put(bytes);
  }

  Result<> end_tensor() override {
    const GgufTensor& tensor = header_.tensors()[next_];
    if (position_ != tensor.offset + tensor.bytes) {
      return fail(ErrorKind::kInternal, "The data of tensor \"%s\" is incomplete.", tensor.name.c_str());
    }
    ++next_;
    const auto now = std::chrono::steady_clock::now();
    if (unflushed_ < kFlushBytes && now - flushed_at_ < kFlushTime) return {};
    if (!file_.flush_content()) return failed(part_);
    DP_CHECK(journal_->add(next_));
    unflushed_ = 0;
    flushed_at_ = std::chrono::steady_clock::now();
    return {};
  }

  Result<> commit() override {
    if (next_ != header_.tensors().size()) return fail(ErrorKind::kInternal, "Tensor %zu is missing.", next_);
    // Writes the padding after the last tensor.
    if (!file_.resize(header_.file_bytes()) || !file_.flush()) return failed(part_);
    if (!replace_ && is_there(path_)) {
      return fail(ErrorKind::kIo, "%s exists by now; it is not replaced.", path_.c_str());
    }
    if (!rename_path(part_, path_)) return failed(path_);
    // The new name must survive as well.
    const std::string folder = parent_path(path_);
    if (!flush_folder(folder)) return failed(folder);
    journal_->remove();
    return {};
  }

 private:
  static Unexpected failed(const std::string& path) {
    return fail(ErrorKind::kIo, "Cannot write %s: %s.", path.c_str(), std::strerror(errno));
  }
  uint64_t end_of(size_t tensor) const {
    return header_.tensors()[tensor].offset + header_.tensors()[tensor].bytes;
  }

  Result<> put(std::span<const uint8_t> bytes) {
    if (!file_.write_at(bytes, position_)) return failed(part_);
    position_ += bytes.size();
    unflushed_ += bytes.size();
    return {};
  }

  std::string path_, part_, note_;
  bool replace_;
  GgufHeader header_;
  std::unique_ptr<Journal> journal_;
  OpenFile file_;
  size_t next_ = 0;
  uint64_t resumed_ = 0, position_ = 0, unflushed_ = 0;
  std::chrono::steady_clock::time_point flushed_at_;
};

}  // namespace

Result<std::unique_ptr<ModelOutput>> open_gguf_output(GgufOutline& outline, OutputOptions options) {
  if (is_there(options.path) && !options.replace) {
    return fail(ErrorKind::kInvalidInput, "%s exists already.", options.path.c_str());
  }
  const std::string fingerprint = options.fingerprint;
  auto output = std::make_unique<GgufOutput>(outline, std::move(options));
  DP_CHECK(output->open(fingerprint));
  return output;
}

}  // namespace doppler::formats
