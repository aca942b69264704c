// Reading from an open Checkpoint; opening one is in open_checkpoint.cpp.
#include "formats/checkpoint.h"

#include "base/json.h"
#include "formats/rdrr/rdrr_reader.h"

namespace doppler::formats {
namespace {

Result<> check_text_size(const std::string& name, uint64_t bytes, uint64_t most) {
  if (bytes <= most) return {};
  return fail(ErrorKind::kInvalidInput, "%s has %s; at most %s are read of such a file.", name.c_str(),
              format_bytes(bytes).c_str(), format_bytes(most).c_str());
}

Task<Result<std::optional<std::string>>> read_text_of(FileSet& files, std::string file_name,
                                                      uint64_t max_bytes) {
  auto opening = files.open(std::move(file_name));
  DP_CO_TRY(const std::unique_ptr<ByteSource> source, co_await std::move(opening));
  if (!source) co_return std::optional<std::string>();
  DP_CO_CHECK(check_text_size(source->name(), source->size(), max_bytes));
  auto reading = source->read(0, source->size());
  DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
  co_return std::optional<std::string>(std::string(bytes.begin(), bytes.end()));
}

}  // namespace

Checkpoint::Checkpoint() : config_(std::make_unique<Json>()) {}
Checkpoint::~Checkpoint() = default;

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
  if (rdrr_) {
    if (const RdrrAsset* asset = rdrr_->asset(file_name))
      DP_CO_CHECK(check_text_size(asset->file, asset->bytes, max_bytes));
    auto reading_asset = read_rdrr_asset(*files_, *rdrr_, std::move(file_name), verify_);
    DP_CO_TRY(const auto asset_bytes, co_await std::move(reading_asset));
    if (!asset_bytes) co_return std::optional<std::string>();
    co_return std::optional<std::string>(std::string(asset_bytes->begin(), asset_bytes->end()));
  }
  auto reading = read_text_of(*files_, std::move(file_name), max_bytes);
  co_return co_await std::move(reading);
}

Task<Result<std::optional<std::string>>> Checkpoint::read_projector_text(std::string file_name) const {
  auto reading = projector_files_ ? read_text_of(*projector_files_, std::move(file_name), kMaxTextBytes)
                                  : read_text(std::move(file_name));
  co_return co_await std::move(reading);
}

}  // namespace doppler::formats
