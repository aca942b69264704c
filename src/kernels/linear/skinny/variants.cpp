// The table of matmul_skinny, best first: kernels of this folder, which unpack each weight once for all rows of x, that
// of narrow/, then those of matmul/ for larger chunks. Read next: matmul_skinny.cpp.
#include "kernels/linear/shared_rows.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kSkinnyTemplates[] = {
    {.suffix = "cpu.once.dp4a",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a,
     .refuse = refuse_unless_cpu,
     .algorithm = Algorithm::kOnceOfCpu,
     .q8 = true,
     .tiled = true},
    kCpuRow,
    {.suffix = "narrow",
     .lane = Lane::kMatrix,
     .needs = kNeedMatrix,
     .refuse = refuse_unless_narrow,
     .algorithm = Algorithm::kNarrow,
     .tiled = true,
     .f16 = true},
    {.suffix = "few.dp4a",
     .lane = Lane::kDp4a,
     .needs = kNeedDp4a,
     .refuse = refuse_unless_few,
     .algorithm = Algorithm::kFew,
     .q8 = true,
     .tiled = true},
    kOnceDp4aRow,
    {.suffix = "once", .refuse = refuse_unless_whole_units, .algorithm = Algorithm::kOnce},
    kMatrixRow,
    kDp4aRow,
    kTile64Row,
    kPortableRow,
};

}  // namespace

std::span<const ProductRow> matmul_skinny_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables =
      expand_templates("matmul_skinny", kSkinnyTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
