// The 32 activations of a unit of a row as f32: two runs of 16 and their sums. Twin of unit_x_q8, for kernels written
// once. Bindings of the entry: x (array of vec4<f32>), x_scales (unused).

alias XElement = vec4<f32>;

struct UnitX {
  first: mat4x4<f32>,
  second: mat4x4<f32>,
  sums: vec2<f32>,
}

fn x16(at: u32) -> mat4x4<f32> { return mat4x4<f32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]); }

fn load_x(row: u32, u: u32) -> UnitX {
  let first = x16(8u * params.units * row + 4u * unit_first16(u));
  let second = x16(8u * params.units * row + 4u * unit_second16(u));
  return UnitX(first, second, vec2<f32>(sum16(first), sum16(second)));
}

fn dot_x(row: u32, u: u32, v: UnitX) -> f32 { return unit_dot(row, u, v.first, v.second, v.sums); }
