// The table of matmul_few, best first: kernels of this folder, which unpack each weight once for all rows of x, then those
// of matmul/ for larger chunks. Read next: matmul_few.cpp.
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kTemplates[] = {
    {"cpu.once.dp4a", Lane::kDp4a, kNeedDp4a, refuse_unless_cpu, Algorithm::kOnceOfCpu, true, true},
    {"cpu", Lane::kPortable, 0, refuse_unless_cpu_and_eights, Algorithm::kTileOfCpu, false},
    {"once.dp4a", Lane::kDp4a, kNeedDp4a, refuse_unless_whole_units, Algorithm::kOnce, true, true},
    {"once", Lane::kPortable, 0, refuse_unless_whole_units, Algorithm::kOnce, false},
    // H200, Dawn, us with 2, 8 and 16 rows (kernel_bench --rows 2,8,16), 28672 x 4096 in tile_q4: once.dp4a 26, 57, 82;
    // once 73, 135, 268; matrix 182, 186, 192; dp4a 377, 378, 382. 16-bit weights were not measured.
    {"matrix", Lane::kMatrix, kNeedMatrix, refuse_unless_matrix, Algorithm::kMatrix, false, true, true},
    {"dp4a", Lane::kDp4a, kNeedDp4a, refuse_unless_whole_units, Algorithm::kWorkgroup, true},
    {"tile64", Lane::kPortable, 0, refuse_unless_eights, Algorithm::kTile, false},
    {"portable", Lane::kPortable, 0, nullptr, Algorithm::kPortable, false},
};

}  // namespace

std::span<const ProductRow> matmul_few_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("matmul_few", kTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
