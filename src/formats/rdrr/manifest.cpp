// Names, sizes and places of manifest.h; reading is manifest_parse.cpp, checking manifest_check.cpp.
#include "formats/rdrr/manifest.h"

#include <algorithm>

namespace doppler::formats {
namespace {

bool multiply_sizes(uint64_t a, uint64_t b, uint64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

uint64_t blocks_for(uint64_t count, uint64_t block) { return count / block + (count % block != 0); }

}  // namespace

const char* rdrr_role_name(RdrrRole role) {
  constexpr const char* kNames[] = {"weights", "embeddings", "lm_head", "experts", "vector"};
  return kNames[static_cast<size_t>(role)];
}

const char* rdrr_layout_name(RdrrLayout layout) {
  constexpr const char* kNames[] = {"flat", "row", "column"};
  return kNames[static_cast<size_t>(layout)];
}

std::string rdrr_shard_name(uint64_t number) {
  return format_text("shard_%05llu.bin", static_cast<unsigned long long>(number));
}

Result<uint64_t> rdrr_tensor_bytes(const RdrrTensor& tensor) {
  const DTypeInfo& type = dtype_info(tensor.type);
  const std::string name = printable(tensor.name);
  uint64_t others = 1;  // all dimensions but the one that the blocks run along
  const size_t dims = tensor.shape.size();
  if (tensor.layout == RdrrLayout::kColumn && dims < 2) {
    return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has %zu dimensions; layout column needs two.",
                name.c_str(), dims);
  }
  const size_t along = tensor.layout == RdrrLayout::kColumn ? dims - 2 : dims - 1;
  bool fits = true;
  for (size_t d = 0; d < dims; ++d) {
    if (tensor.shape[d] == 0) {
      return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has a dimension of 0.", name.c_str());
    }
    if (d != along) fits = fits && multiply_sizes(others, tensor.shape[d], others);
  }
  const uint64_t run = dims == 0 ? 1 : tensor.shape[along];
  uint64_t blocks = 0;
  if (tensor.layout == RdrrLayout::kFlat) {
    uint64_t count = 0;
    fits = fits && multiply_sizes(others, run, count);
    if (fits && count % type.block_size != 0) {
      return fail(ErrorKind::kInvalidInput,
                  "Tensor \"%s\" has %llu numbers, which is not a multiple of the %s block (%u), as layout "
                  "flat needs.",
                  name.c_str(), static_cast<unsigned long long>(count), type.name, type.block_size);
    }
    blocks = count / type.block_size;
  } else {
    fits = fits && multiply_sizes(others, blocks_for(run, type.block_size), blocks);
  }
  uint64_t bytes = 0;
  fits = fits && multiply_sizes(blocks, type.block_bytes, bytes);
  // The numbers too must be countable: rows are unpacked to 4 bytes each.
  uint64_t numbers = 0;
  fits = fits && multiply_sizes(others, run, numbers) && numbers <= UINT64_MAX / 8;
  if (!fits || bytes > UINT64_MAX / 2) {
    return fail(ErrorKind::kInvalidInput, "The size of tensor \"%s\" overflows 64 bits.", name.c_str());
  }
  return bytes;
}

Result<> rdrr_lay_out(RdrrManifest& manifest) {
  const uint64_t size = manifest.shard_bytes;
  DP_CHECK(check_rdrr_shard_bytes(size, "The outline"));
  uint64_t end = 0;
  for (RdrrTensor& tensor : manifest.tensors) {
    DP_TRY(tensor.bytes, rdrr_tensor_bytes(tensor));
    const uint64_t begin = (end + kRdrrAlignment - 1) / kRdrrAlignment * kRdrrAlignment;
    if (tensor.bytes > kRdrrMaxShards * size || begin > kRdrrMaxShards * size - tensor.bytes) {
      return fail(ErrorKind::kInvalidInput,
                  "The tensors need more than %llu shards of %s; choose a larger shard size.",
                  static_cast<unsigned long long>(kRdrrMaxShards), format_bytes(size).c_str());
    }
    tensor.shard = static_cast<uint32_t>(begin / size);
    tensor.offset = begin % size;
    end = begin + tensor.bytes;
  }
  manifest.shards.clear();
  for (uint64_t begin = 0; begin < end; begin += size) {
    RdrrShard shard;
    shard.file = rdrr_shard_name(manifest.shards.size());
    shard.bytes = std::min(size, end - begin);
    manifest.shards.push_back(std::move(shard));
  }
  return {};
}

const RdrrAsset* RdrrManifest::asset(std::string_view file) const {
  const auto it = std::ranges::find(assets, file, &RdrrAsset::file);
  return it == assets.end() ? nullptr : &*it;
}

}  // namespace doppler::formats
