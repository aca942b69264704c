#include "kernels/recurrent/output_forms.h"

namespace doppler::kernels {

Result<void> check_forms(const Context& ctx, const Rows& y, uint32_t n, std::string_view what) {
  const std::string name(what);
  if (y.q8.valid() && n % 32 != 0) {
    return fail(ErrorKind::kInternal, "Row length (%u) of the q8 output of %s is not a multiple of 32.", n,
                name.c_str());
  }
  if (y.f16.valid() && n % 16 != 0) {
    return fail(ErrorKind::kInternal, "Row length (%u) of the f16 output of %s is not a multiple of 16.", n,
                name.c_str());
  }
  const uint32_t rows = ctx.max_rows;
  if (y.q8.valid()) DP_CHECK(check_view(y.q8, q8_bytes(rows, n), "q8 of " + name));
  if (y.f16.valid()) DP_CHECK(check_view(y.f16, f16_bytes(rows, n), "f16 of " + name));
  if (y.f32.valid() || !(y.q8.valid() || y.f16.valid())) {
    DP_CHECK(check_view(y.f32, uint64_t{rows} * n * sizeof(float), "y of " + name));
  }
  return {};
}

void add_forms(Context& ctx, Launch& launch, const Rows& y, uint32_t n) {
  launch.consts.push_back(bool_const("HAS_F32", y.f32.valid()));
  launch.consts.push_back(bool_const("HAS_Q8", y.q8.valid()));
  launch.consts.push_back(bool_const("HAS_F16", y.f16.valid()));
  launch.consts.push_back(u32_const("F16_COLUMNS", n));
  launch.consts.push_back(u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, n) / 4));
  for (const TensorView& view : {y.f32, y.q8, y.f16}) {
    launch.bindings.push_back(view.valid() ? view : unused_binding(ctx));
  }
}

uint64_t form_bytes(const Rows& y, uint32_t n) {
  return (y.f32.valid() ? 4ull * n : 0) + (y.q8.valid() ? n + n / 2ull : 0) + (y.f16.valid() ? 2ull * n : 0);
}

}  // namespace doppler::kernels
