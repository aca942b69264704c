// What the kernels of this folder share that write rows in the forms which products read (common/forms.h).
#pragma once

#include <string_view>

#include "kernels/common/dispatch.h"
#include "kernels/common/forms.h"

namespace doppler::kernels {

// Errors: a form that `n` columns cannot have, or too small a view; `what` names the kernel.
Result<void> check_forms(const Context& ctx, const Rows& y, uint32_t n, std::string_view what);
// The constants HAS_F32, HAS_Q8, HAS_F16, F16_COLUMNS and Q8_PLANE1, and the bindings f32, q8, f16 behind those there are.
void add_forms(Context& ctx, Launch& launch, const Rows& y, uint32_t n);
// Bytes of a row in all its forms.
uint64_t form_bytes(const Rows& y, uint32_t n);

}  // namespace doppler::kernels
