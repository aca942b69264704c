// The table of matmul, best first. Read next: matmul.cpp.
#include "kernels/linear/shared_rows.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kTemplates[] = {
    kCpuRow, kMatrixRow, kDp4aRow, kSmallRow, kTile64Row, kPortableRow,
};

}  // namespace

std::span<const ProductRow> matmul_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("matmul", kTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
