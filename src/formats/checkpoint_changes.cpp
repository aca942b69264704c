#include "formats/checkpoint_changes.h"

#include <algorithm>
#include <iterator>

#include "formats/image_tensors.h"
#include "formats/projector/projector.h"

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
    index(to);
  }

  static Result<void> join(Checkpoint& to, Checkpoint& projector) {
    const auto first = static_cast<uint32_t>(to.sources_.size());
    for (TensorInfo& tensor : projector.tensors_) {
      if (to.find(tensor.name)) {
        return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is in both %s and %s.",
                    printable(tensor.name).c_str(), to.name().c_str(), projector.name().c_str());
      }
      tensor.file += first;
    }
    std::ranges::move(projector.tensors_, std::back_inserter(to.tensors_));
    std::ranges::move(projector.sources_, std::back_inserter(to.sources_));
    to.projector_ = std::move(projector.gguf_);
    to.projector_files_ = std::move(projector.files_);
    index(to);
    return {};
  }

  static void put_projector(Checkpoint& to, std::vector<TensorInfo> tensors,
                            std::vector<std::unique_ptr<ByteSource>> sources,
                            const std::unordered_set<std::string>& instead_of, GgufFile header) {
    std::erase_if(to.tensors_, [&](const TensorInfo& tensor) { return instead_of.contains(tensor.name); });
    std::ranges::move(tensors, std::back_inserter(to.tensors_));
    std::ranges::move(sources, std::back_inserter(to.sources_));
    to.projector_ = std::move(header);
    index(to);
  }

  static Result<void> shape(Checkpoint& checkpoint) {
    const GgufFile& header = checkpoint.projector() ? *checkpoint.projector() : *checkpoint.gguf();
    std::vector<TensorInfo> of_tower;
    std::erase_if(checkpoint.tensors_, [&](TensorInfo& tensor) {
      const bool is_moved = is_projector_tensor(tensor.name);
      if (is_moved) of_tower.push_back(std::move(tensor));
      return is_moved;
    });
    DP_CHECK(reshape_projector_tensors(checkpoint.sources_, of_tower, header));
    reshape_image_tensors(checkpoint.sources_, of_tower);
    std::ranges::move(of_tower, std::back_inserter(checkpoint.tensors_));
    index(checkpoint);
    return {};
  }

 private:
  static void index(Checkpoint& checkpoint) {
    checkpoint.index_.clear();  // its keys are in the tensors, which may have moved
    for (uint32_t i = 0; i < checkpoint.tensors_.size(); ++i)
      checkpoint.index_.emplace(checkpoint.tensors_[i].name, i);
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

void put_source(Checkpoint& checkpoint, const std::string& tensor, std::unique_ptr<ByteSource> source,
                std::vector<uint64_t> shape) {
  const TensorInfo* const known = checkpoint.find(tensor);
  if (!known) return;
  TensorInfo changed = *known;
  if (!shape.empty()) changed.shape = std::move(shape);
  CheckpointChanges::put(checkpoint, std::move(changed), std::move(source));
}

Result<void> join_projector(Checkpoint& checkpoint, std::unique_ptr<Checkpoint> projector) {
  return CheckpointChanges::join(checkpoint, *projector);
}

void put_projector(Checkpoint& checkpoint, std::vector<TensorInfo> tensors,
                   std::vector<std::unique_ptr<ByteSource>> sources,
                   const std::unordered_set<std::string>& instead_of, GgufFile header) {
  CheckpointChanges::put_projector(checkpoint, std::move(tensors), std::move(sources), instead_of,
                                   std::move(header));
}

Result<void> shape_projector(Checkpoint& checkpoint) { return CheckpointChanges::shape(checkpoint); }

}  // namespace doppler::formats
