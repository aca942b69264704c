// Shared by the kernels of this folder that write rows in the forms of common/forms.h, which products read.
#pragma once

#include <string_view>

#include "kernels/common/dispatch.h"
#include "kernels/common/forms.h"

namespace doppler::kernels {

// Errors: a form that `n` columns cannot have, or too small a view; `what` names the kernel.
Result<void> check_forms(const Context& ctx, const Rows& y, uint32_t n, std::string_view what);
// The constants HAS_F32, HAS_Q8, HAS_F16, F16_COLUMNS and Q8_PLANE1, and the bindings f32, q8, f16 after those of the
// kernel.
void add_forms(Context& ctx, Launch& launch, const Rows& y, uint32_t n);
// Bytes of a row in all its forms.
uint64_t form_bytes(const Rows& y, uint32_t n);

}  // namespace doppler::kernels
