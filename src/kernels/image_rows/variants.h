// The rows of what image_rows.h has, for record() and for the tests that force each.
#pragma once

#include <span>

#include "kernels/image_rows/image_rows.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<TableRows>> table_rows_variants();
std::span<const Variant<ImageRows>> image_rows_variants();
std::span<const Variant<MeanParts>> mean_parts_variants();
std::span<const Variant<PatchValues>> patch_values_variants();
std::span<const Variant<Clamp>> clamp_variants();
std::span<const Variant<Standardise>> standardise_variants();

}  // namespace doppler::kernels
