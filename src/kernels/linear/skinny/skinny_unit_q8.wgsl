// A unit of 32 weights in a tile format, unpacked once, times 8-bit activations of several rows (common/forms.h). A
// unit of x is three vec4: the codes of its two blocks, and (d, d', d * sum + d' * sum') of both. Twin:
// skinny_unit_f32. Bindings of the entry: weights, scales, x (plane 0), x_scales (plane 1, a unit an element). Const:
// UNITS. x_part() comes with linear/skinny/x.
//!import linear/weights/format

alias XElement = vec4<u32>;
alias Fetched = Words;
alias Unit = UnitBytes;

const X_VEC4S = 3u;
const X_LOADS = 2u;  // of x; the third is made of x_scales

struct UnitX {
  first: vec4<u32>,
  second: vec4<u32>,
  d: vec4<f32>,
}

fn fetch(row: u32, u: u32) -> Fetched { return load_words(row, u); }
fn unpack_unit(w: Fetched) -> Unit { return unit_bytes(w); }

// Vec4 i of a row, of X_LOADS * UNITS.
fn load_x(row: u32, i: u32) -> vec4<u32> { return x[X_LOADS * UNITS * (first_x_row + row) + i]; }
fn load_factors(row: u32, u: u32) -> vec4<u32> {
  let d = x_scales[UNITS * (first_x_row + row) + u];
  return bitcast<vec4<u32>>(vec4<f32>(d.x, d.z, d.y + d.w, 0.0));
}

fn unit_x(row: u32, c: u32) -> UnitX {
  return UnitX(x_part(row, c, 0u), x_part(row, c, 1u), bitcast<vec4<f32>>(x_part(row, c, 2u)));
}

// 16 products of signed bytes, exact. Below 2^22 an integer added to the bits of 1.5 * 2^23 is added to the number,
// which costs a GPU less than to convert it.
fn fdot16(a: vec4<u32>, b: vec4<u32>) -> f32 {
  let bits = dot4I8Packed(a.x, b.x) + 0x4b400000 + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
  return bitcast<f32>(bits) - 12582912.0;
}

fn multiply(w: Unit, v: UnitX) -> f32 {
  let first = v.d.x * fdot16(w.first, v.first);
  let second = v.d.y * fdot16(w.second, v.second);
  var sum = w.scale.x * (first + second);
  if (!ONE_SCALE) { sum = w.scale.x * first + w.scale.y * second; }
  if (HAS_MINIMUM) { sum -= w.minimum * v.d.z; }
  return sum;
}
