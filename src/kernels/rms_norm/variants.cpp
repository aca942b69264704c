// The variant table of rms_norm, best first.
#include "kernels/rms_norm/variants.h"

#include <array>

#include "kernels/rms_norm/rms_norm_portable.wgsl.h"
#include "kernels/rms_norm/rms_norm_subgroup.wgsl.h"
#include "kernels/rms_norm/rms_norm_vec4.wgsl.h"

namespace doppler::kernels {
namespace {

// A row lies in the registers of one workgroup: four vec4s an invocation where workgroups of 1,024 are allowed.
std::string refuse_unless_quads(const NormShape& op, const gpu::Caps& caps) {
  constexpr uint32_t kMostValues = 16384;
  if (caps.type == gpu::AdapterType::kCpu) return "it is shaped for a GPU and this device is a CPU";
  if (op.n % 4 != 0 || op.n > kMostValues) {
    return format_text("the row length (%u) is not a multiple of 4 up to %u", op.n, kMostValues);
  }
  return "";
}

const std::array<RmsNormRow, 3> kRmsNormRows = {{
    {{.name = "rms_norm.vec4",
      .lane = Lane::kSubgroups,
      .needs = kNeedSubgroups,
      .refuse = refuse_unless_quads},
     {.entry = "rms_norm/rms_norm_vec4", .layout = wgsl::rms_norm_vec4::kLayout}},
    {{.name = "rms_norm.subgroup", .lane = Lane::kSubgroups, .needs = kNeedSubgroups},
     {.entry = "rms_norm/rms_norm_subgroup", .layout = wgsl::rms_norm_subgroup::kLayout}},
    {{.name = "rms_norm.portable"},
     {.entry = "rms_norm/rms_norm_portable", .layout = wgsl::rms_norm_portable::kLayout}},
}};

}  // namespace

std::span<const RmsNormRow> rms_norm_variants() { return kRmsNormRows; }

}  // namespace doppler::kernels
