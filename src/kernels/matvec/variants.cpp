// The table of matvec, best first. What a row's shape costs on which GPU is in the comments of matvec.cpp,
// beside the numbers it sets. Read next: matvec.cpp.
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

constexpr ProductTemplate kTemplates[] = {
    // lavapipe (subgroups of 8, 2 cores), 2560 x 512: 0.5 ms as q8_0 with dp4a, 0.7 ms without.
    {"cpu.dp4a", Lane::kDp4a, kNeedDp4a, refuse_unless_cpu, Algorithm::kWholeRows, true},
    {"cpu", Lane::kPortable, 0, refuse_unless_cpu, Algorithm::kWholeRows, false},
    {"dp4a.tile", Lane::kDp4a, kNeedDp4a, refuse_unless_tiles_fit, Algorithm::kTiled, true, true},
    {"tile", Lane::kPortable, 0, refuse_unless_tiles, Algorithm::kTiled, false, true},
    // H200, Dawn, 28672 x 4096 in q4_k (kernel_bench --model 8b, GPU time alone): dp4a 33.0 us,
    // dp4a.workgroup 34.5,
    // subgroup 55.9, workgroup 60.4, portable 90.3; in q6_k 128256 x 4096: 148, 178, 208, 227, 374 us.
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
