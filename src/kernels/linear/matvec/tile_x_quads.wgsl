// x in workgroup memory as f32, and a tile format's words times it: what tile_x_f32 and tile_x_splits_f32 share.
// Consts: UNITS. Barrier: the caller's, between the last write of x_quads and the first dot_unit().
//!import linear/weights/weight_bytes

// A unit takes nine places, so that two units read at once do not lie in the same banks.
const kUnitPlaces = 9u;

var<workgroup> x_quads: array<vec4<f32>, kUnitPlaces * UNITS>;

fn quad_place(quad: u32) -> u32 { return quad / 8u * kUnitPlaces + quad % 8u; }

fn x16(at: u32) -> mat4x4<f32> {
  return mat4x4<f32>(x_quads[at], x_quads[at + 1u], x_quads[at + 2u], x_quads[at + 3u]);
}

fn dot_unit(w: Words, u: u32) -> f32 {
  let first = x16(kUnitPlaces * u);
  let second = x16(kUnitPlaces * u + 4u);
  return words_dot(w, first, second, vec2<f32>(sum16(first), sum16(second)));
}
