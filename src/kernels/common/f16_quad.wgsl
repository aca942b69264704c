// Four consecutive numbers of a row as f16 in tiles (layout: common/forms.h) of F16_COLUMNS columns; beyond the range
// of f16 its largest number is written.
const kLargestF16 = 65504.0;

// The index of their pair of words.
fn f16_quad_at(row: u32, column: u32) -> u32 {
  return ((row / 16u * (F16_COLUMNS / 16u) + column / 16u) * 16u + row % 16u) * 4u + column % 16u / 4u;
}

fn f16_quad(values: vec4<f32>) -> vec2<u32> {
  let v = clamp(values, vec4<f32>(-kLargestF16), vec4<f32>(kLargestF16));
  return vec2<u32>(pack2x16float(v.xz), pack2x16float(v.yw));
}
