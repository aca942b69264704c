// The rows of table_rows, image_rows and mean_parts, for record() and for the tests that force each.
#pragma once

#include <span>

#include "kernels/image_rows/image_rows.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<TableRows>> table_rows_variants();
std::span<const Variant<ImageRows>> image_rows_variants();
std::span<const Variant<MeanParts>> mean_parts_variants();

}  // namespace doppler::kernels
