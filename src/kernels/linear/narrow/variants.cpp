// The table of matmul_narrow, best first: the kernel of this folder, and those of matmul/ for larger chunks. Read next:
// matmul_narrow.cpp.
#include "kernels/linear/shared_rows.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kTemplates[] = {
    kCpuRow,
    // H200, Dawn, 2026-11-22, all products of a step of an 8B model in Q4_K_M (linear_chain_bench), ms with 32 and 64 rows:
    // narrow 4.67 and 6.41, matmul's matrix 12.3 and 13.4 (in plans of 512 rows 14.9 and 15.3), dp4a 42.5 with 32.
    // 1B: narrow 1.26 and 1.63, matrix in plans of 512 rows 2.82 and 2.87.
    {.suffix = "narrow",
     .lane = Lane::kMatrix,
     .needs = kNeedMatrix,
     .refuse = refuse_unless_matrix,
     .algorithm = Algorithm::kNarrow,
     .tiled = true,
     .f16 = true},
    // For devices without matrix units. 16 rows at a time; in plans of 16 rows 6.38 ms, dp4a 41.6.
    kOnceDp4aRow,
    kDp4aRow,
    kSmallRow,
    kTile64Row,
    kPortableRow,
};

}  // namespace

std::span<const ProductRow> matmul_narrow_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("matmul_narrow", kTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
