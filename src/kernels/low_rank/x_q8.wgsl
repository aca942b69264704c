// Four numbers of a row of 8-bit blocks (common/forms.h). Twins: x_f32, x_vec4. The kernel binds `x` (plane 0) and
// `x_scales` (plane 1). Const: K.
alias XElement = u32;

fn load_x(row: u32, quad: u32) -> vec4f {
  let word = bitcast<i32>(x[row * (K / 4u) + quad]);
  let values = vec4<i32>(word << 24u, word << 16u, word << 8u, word) >> vec4<u32>(24u);
  return vec4f(values) * x_scales[row * (K / 16u) + quad / 4u].x;
}
