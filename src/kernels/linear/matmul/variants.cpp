// The table of matmul, best first. Read next: matmul.cpp.
#include "kernels/linear/shared_rows.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kTemplates[] = {
    kCpuRow,
    // H200, Dawn, 512 rows in tile_q4 (kernel_bench --rows 512): 16384 x 2048 237 TFLOP/s, dp4a 57; with 8 rows
    // still 1.9 times as fast as dp4a.
    kMatrixRow,
    kDp4aRow,
    kSmallRow,
    kTile64Row,
    kPortableRow,
};

}  // namespace

std::span<const ProductRow> matmul_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("matmul", kTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
