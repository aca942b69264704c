// The table of matmul_narrow, best first: the kernel of this folder, and those of matmul/ for larger chunks. Read next:
// matmul_narrow.cpp.
#include "kernels/linear/shared_rows.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kNarrowTemplates[] = {
    kCpuRow,
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
  static const std::vector<std::vector<ProductRow>> tables =
      expand_templates("matmul_narrow", kNarrowTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
