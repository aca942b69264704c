#include "formats/checkpoint_changes.h"

namespace doppler::formats {
namespace {

// Gives numbers in memory like a mapped file.
class HeldNumbers final : public ByteSource {
 public:
  HeldNumbers(std::string name, std::vector<float> values)
      : name_(std::move(name)), values_(std::move(values)) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return mapped().size(); }
  std::span<const uint8_t> mapped() const override {
    return {reinterpret_cast<const uint8_t*>(values_.data()), values_.size() * sizeof(float)};
  }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    const std::span<const uint8_t> bytes = mapped().subspan(host_size(offset), host_size(count));
    co_return std::vector<uint8_t>(bytes.begin(), bytes.end());
  }

 private:
  std::string name_;
  std::vector<float> values_;
};

}  // namespace

class CheckpointChanges {
 public:
  static void put(Checkpoint& to, TensorInfo tensor, std::unique_ptr<ByteSource> source) {
    tensor.file = static_cast<uint32_t>(to.sources_.size());
    tensor.offset = 0;
    tensor.bytes = source->size();
    to.sources_.push_back(std::move(source));
    const auto known = to.index_.find(tensor.name);
    if (known != to.index_.end()) {
      to.tensors_[known->second] = std::move(tensor);
    } else {
      to.tensors_.push_back(std::move(tensor));
    }
    to.index_.clear();  // its keys are in the tensors, which may have moved
    for (uint32_t i = 0; i < to.tensors_.size(); ++i) to.index_.emplace(to.tensors_[i].name, i);
  }
};

void put_tensor(Checkpoint& checkpoint, std::string tensor, std::vector<uint64_t> shape,
                std::vector<float> values, std::string from) {
  CheckpointChanges::put(checkpoint,
                         {.name = std::move(tensor),
                          .type = DType::kF32,
                          .shape = std::move(shape),
                          .file = 0,
                          .offset = 0,
                          .bytes = 0},
                         std::make_unique<HeldNumbers>(std::move(from), std::move(values)));
}

void put_source(Checkpoint& checkpoint, const std::string& tensor, std::unique_ptr<ByteSource> source) {
  if (const TensorInfo* known = checkpoint.find(tensor)) {
    CheckpointChanges::put(checkpoint, *known, std::move(source));
  }
}

}  // namespace doppler::formats
