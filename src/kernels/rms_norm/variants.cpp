// The variant table of rms_norm, best first.
#include "kernels/rms_norm/variants.h"

#include <array>

#include "kernels/rms_norm/rms_norm_portable.wgsl.h"
#include "kernels/rms_norm/rms_norm_subgroup.wgsl.h"

namespace doppler::kernels {
namespace {

const std::array<RmsNormRow, 2> kRows = {{
    {{"rms_norm.subgroup", Lane::kSubgroups, kNeedSubgroups},
     "rms_norm/rms_norm_subgroup",
     wgsl::rms_norm_subgroup::kLayout},
    {{"rms_norm.portable"}, "rms_norm/rms_norm_portable", wgsl::rms_norm_portable::kLayout},
}};

}  // namespace

std::span<const RmsNormRow> rms_norm_variants() { return kRows; }

}  // namespace doppler::kernels
