// The table of matmul, best first. Read next: matmul.cpp.
#include "base/text.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

std::string refuse_unless_eights(const ProductShape& shape, const gpu::Caps&) {
  if (shape.k % 8 == 0) return "";
  return format_text("the column count (%u) is not a multiple of 8", shape.k);
}

std::string refuse_unless_cpu_and_eights(const ProductShape& shape, const gpu::Caps& caps) {
  if (caps.type != gpu::AdapterType::kCpu) return refuse_unless_cpu(shape, caps);
  return refuse_unless_eights(shape, caps);
}

// What matmul_matrix.wgsl is written for.
std::string refuse_unless_matrix(const ProductShape& shape, const gpu::Caps& caps) {
  constexpr uint32_t kSubgroup = 32, kLeastMemory = 16384;
  if (caps.subgroup_min != kSubgroup || caps.subgroup_max != kSubgroup) {
    return format_text("it is written for subgroups of %u, this device has %u to %u", kSubgroup,
                       caps.subgroup_min, caps.subgroup_max);
  }
  if (caps.max_workgroup_bytes < kLeastMemory) {
    return format_text("it needs %u bytes of workgroup memory, this device has %u", kLeastMemory,
                       caps.max_workgroup_bytes);
  }
  return refuse_unless_whole_units(shape, caps);
}

constexpr uint32_t kNeedMatrix = kNeedMatrixF16 | kNeedF16 | kNeedSubgroups | kNeedTint;

constexpr ProductTemplate kTemplates[] = {
    // tile64 without the work of rows that are not there. lavapipe, 1280 x 512 in q4_k, CPU time: 8.9 G
    // operations
    // a second at 64 rows, as dp4a, and 1.5 times dp4a at 5 and 20 rows.
    {"cpu", Lane::kPortable, 0, refuse_unless_cpu_and_eights, Algorithm::kTileOfCpu, false},
    // H200, Dawn, 512 rows in tile_q4 (kernel_bench --rows 512): 16384 x 2048 237 TFLOP/s, dp4a 57; with 8 rows
    // still 1.9 times as fast as dp4a.
    {"matrix", Lane::kMatrix, kNeedMatrix, refuse_unless_matrix, Algorithm::kMatrix, false, true, true},
    // H200, Dawn, 512 rows, 28672 x 4096 in q4_k (kernel_bench --model 8b --rows 512): dp4a 50.6 TFLOP/s,
    // tile64 20.0.
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
