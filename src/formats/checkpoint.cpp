// Reading from an open Checkpoint; opening one is in open_checkpoint.cpp.
#include "formats/checkpoint.h"

namespace doppler::formats {

const TensorInfo* Checkpoint::find(std::string_view tensor) const {
  const auto it = index_.find(tensor);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

std::span<const uint8_t> Checkpoint::mapped(const TensorInfo& tensor) const {
  const std::span<const uint8_t> all = sources_[tensor.file]->mapped();
  return all.empty() ? all : all.subspan(host_size(tensor.offset), host_size(tensor.bytes));
}

Task<Result<std::vector<uint8_t>>> Checkpoint::read_tensor(const TensorInfo& tensor) const {
  return sources_[tensor.file]->read(tensor.offset, tensor.bytes);
}

Task<Result<std::optional<std::string>>> Checkpoint::read_text(std::string file_name,
                                                               uint64_t max_bytes) const {
  auto opening = files_->open(std::move(file_name));
  DP_CO_TRY(const std::unique_ptr<ByteSource> source, co_await std::move(opening));
  if (!source) co_return std::optional<std::string>();
  if (source->size() > max_bytes) {
    co_return fail(ErrorKind::kInvalidInput, "%s has %s; at most %s are read of such a file.",
                   source->name().c_str(), format_bytes(source->size()).c_str(),
                   format_bytes(max_bytes).c_str());
  }
  auto reading = source->read(0, source->size());
  DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
  co_return std::optional<std::string>(std::string(bytes.begin(), bytes.end()));
}

}  // namespace doppler::formats
