// The rows of AltUp's operations, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/altup/altup.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<AltupMatch>> altup_match_variants();
std::span<const Variant<AltupPredict>> altup_predict_variants();
std::span<const Variant<AltupCorrect>> altup_correct_variants();

}  // namespace doppler::kernels
