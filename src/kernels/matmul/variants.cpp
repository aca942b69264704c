// The table of matmul, best first. Read next: matmul.cpp.
#include "base/text.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

std::string refuse_unless_eights(const ProductShape& shape, const gpu::Caps&) {
  if (shape.k % 8 == 0) return "";
  return format_text("the column count (%u) is not a multiple of 8", shape.k);
}

constexpr ProductTemplate kTemplates[] = {
    {"dp4a", Lane::kDp4a, kNeedDp4a, refuse_unless_whole_units, Algorithm::kWorkgroup, true},
    {"tile64", Lane::kPortable, 0, refuse_unless_eights, Algorithm::kTile, false},
    {"portable", Lane::kPortable, 0, nullptr, Algorithm::kPortable, false},
};

}  // namespace

std::span<const ProductRow> matmul_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("matmul", kTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
