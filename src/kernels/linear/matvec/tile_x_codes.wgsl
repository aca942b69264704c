// x in workgroup memory as 8-bit blocks of 16 (common/forms.h) that the workgroup makes itself, and a tile format's
// words times them: what tile_x_blocks and tile_x_add_norm_subgroup share.
// Consts: UNITS. Barrier: the caller's, between the last write and the first dot_unit().

const kBlocks = 2u * UNITS;

var<workgroup> x_codes: array<vec4<u32>, kBlocks>;
var<workgroup> x_factors: array<vec2<f32>, kBlocks>;  // (d, d * sum)

fn dot_unit(w: Words, u: u32) -> f32 {
  return words_dot_q8(w, x_codes[2u * u], x_codes[2u * u + 1u], x_factors[2u * u], x_factors[2u * u + 1u]);
}
