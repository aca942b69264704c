// The 32 activations of a unit of a row as 8-bit blocks (common/forms.h): two runs of 16, each with (d, d * sum) of its
// block. Twin of unit_x_f32, for kernels written once.
// Bindings of the entry: x (array of vec4<u32>, plane 0), x_scales (array of vec2<f32>, plane 1).

alias XElement = vec4<u32>;

struct UnitX {
  first: vec4<u32>,
  second: vec4<u32>,
  d_first: vec2<f32>,
  d_second: vec2<f32>,
}

fn load_x(row: u32, u: u32) -> UnitX {
  let a = 2u * params.units * row + unit_first16(u);
  let b = 2u * params.units * row + unit_second16(u);
  return UnitX(x[a], x[b], x_scales[a], x_scales[b]);
}

fn dot_x(row: u32, u: u32, v: UnitX) -> f32 { return unit_dot_q8(row, u, v.first, v.second, v.d_first, v.d_second); }
