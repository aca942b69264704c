// A unit of 8 weights of any format, unpacked once to f32, times f32 activations of several rows: two vec4 a unit.
// Twin: skinny_unit_q8.
// Bindings of the entry: weights, scales, x, x_scales (unused). Const: UNITS. x_part() comes with linear/skinny/x.
//!import linear/weights/format

alias XElement = vec4<f32>;
alias Fetched = mat2x4<f32>;
alias Unit = mat2x4<f32>;
alias UnitX = mat2x4<f32>;

const X_VEC4S = 2u;
const X_LOADS = 2u;

fn fetch(row: u32, u: u32) -> Fetched { return weight8(row, u); }
fn unpack_unit(w: Fetched) -> Unit { return w; }

// Vec4 i of a row, of X_LOADS * UNITS.
fn load_x(row: u32, i: u32) -> vec4<u32> { return bitcast<vec4<u32>>(x[X_LOADS * UNITS * (first_x_row + row) + i]); }
fn load_factors(row: u32, u: u32) -> vec4<u32> { return vec4<u32>(0u); }

fn unit_x(row: u32, c: u32) -> UnitX {
  return UnitX(bitcast<vec4<f32>>(x_part(row, c, 0u)), bitcast<vec4<f32>>(x_part(row, c, 1u)));
}

fn multiply(w: Unit, v: UnitX) -> f32 { return dot(w[0], v[0]) + dot(w[1], v[1]); }
