// The table of matvec, best first. What a row's shape costs on which GPU is in the comments of matvec.cpp,
// beside the numbers it sets. Read next: matvec.cpp.
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kTemplates[] = {
    // lavapipe (subgroups of 8, 2 cores), 2560 x 512: 0.5 ms as q8_0 against 1.1 ms with the columns split.
    {"cpu.dp4a", Lane::kDp4a, kNeedDp4a, refuse_unless_cpu, Algorithm::kWholeRows, true},
    {"cpu", Lane::kPortable, 0, refuse_unless_cpu, Algorithm::kWholeRows, false},
    // Unpacking to f32 costs more than reading the weights from the fourth generation of HBM on: integer dot
    // products first.
    {"dp4a", Lane::kDp4a, kNeedDp4a | kNeedSubgroups, refuse_unless_whole_units, Algorithm::kSubgroup, true},
    {"dp4a.workgroup", Lane::kDp4a, kNeedDp4a, refuse_unless_whole_units, Algorithm::kWorkgroup, true},
    {"subgroup", Lane::kSubgroups, kNeedSubgroups, refuse_unless_whole_units, Algorithm::kSubgroup, false},
    {"workgroup", Lane::kPortable, 0, refuse_unless_whole_units, Algorithm::kWorkgroup, false},
    {"portable", Lane::kPortable, 0, nullptr, Algorithm::kPortable, false},
};

}  // namespace

std::span<const ProductRow> matvec_variants(WeightFormat format) {
  static const std::vector<std::vector<ProductRow>> tables = expand_templates("matvec", kTemplates);
  return tables[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
