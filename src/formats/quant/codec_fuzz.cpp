// Fuzz target: the first byte picks a type, the second the columns, the rest are its blocks. Decoding, every
// layout and re-encoding must stay in bounds, and a lossless layout must not depend on what the planes held
// before.
#include <cmath>
#include <cstring>
#include <vector>

#include "base/fuzz_check.h"
#include "formats/quant/codec.h"
#include "formats/quant/repack.h"

using namespace doppler;
using namespace doppler::formats;

namespace {

constexpr DType kTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ4_0,   DType::kQ4_1,
                            DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ2_K,   DType::kQ3_K,
                            DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kMXFP4};

std::vector<uint8_t> planes(DType type, WeightFormat to, const std::vector<uint8_t>& blocks, uint64_t rows,
                            uint64_t k, uint8_t filling) {
  const WeightLayout layout = weight_layout(to, rows, k);
  std::vector<uint8_t> plane0(rows * layout.plane0_row_bytes, filling),
      plane1(rows * layout.plane1_row_bytes, filling);
  const auto done = repack_rows(type, to, blocks.data(), rows, k, plane0.data(), plane1.data());
  if (!done) {
    check_sentence(done.error());
    return {};
  }
  plane0.insert(plane0.end(), plane1.begin(), plane1.end());
  return plane0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const DType type = kTypes[data[0] % std::size(kTypes)];
  const DTypeInfo& info = dtype_info(type);
  const uint64_t k = info.block_size * (1 + data[1] % 4);
  const uint64_t rows = (size - 2) / bytes_of(type, k);
  if (rows == 0) return 0;
  const std::vector<uint8_t> blocks(data + 2,
                                    data + 2 + rows * bytes_of(type, k));  // exactly: ASan sees overreads
  std::vector<float> values(rows * k);
  if (!dequantise(type, blocks.data(), values.data(), values.size())) std::abort();
  for (int to = 0; to < kWeightFormatCount; ++to) {
    const auto format = static_cast<WeightFormat>(to);
    if (planes(type, format, blocks, rows, k, 0x00) != planes(type, format, blocks, rows, k, 0xFF))
      std::abort();
  }
  for (const DType target : kTypes) {
    if (!can_quantise(target) || values.size() % dtype_info(target).block_size != 0) continue;
    std::vector<uint8_t> out(bytes_of(target, values.size()));
    if (!quantise(target, values.data(), out.data(), values.size())) std::abort();
  }
  return 0;
}
