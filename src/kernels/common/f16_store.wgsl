// Writes activations as f16 in tiles (layout: common/forms.h), four consecutive numbers of a row of F16_COLUMNS
// at a time; beyond the range of f16 its largest number is written. The kernel declares y_f16: array<vec2<u32>>.
const kLargestF16 = 65504.0;

fn store_f16_quad(row: u32, column: u32, values: vec4<f32>) {
  let v = clamp(values, vec4<f32>(-kLargestF16), vec4<f32>(kLargestF16));
  let at = ((row / 16u * (F16_COLUMNS / 16u) + column / 16u) * 16u + row % 16u) * 4u + column % 16u / 4u;
  y_f16[at] = vec2<u32>(pack2x16float(v.xz), pack2x16float(v.yw));
}
