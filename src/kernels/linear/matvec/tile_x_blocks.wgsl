// 8-bit blocks of x, each made by one invocation: what tile_x_add_norm and tile_x_splits share.
//!import common/q8_block
//!import linear/matvec/tile_x_codes

struct Sixteen {
  a: vec4<f32>,
  b: vec4<f32>,
  c: vec4<f32>,
  d: vec4<f32>,
}

fn stage_block(block: u32, h: Sixteen) {
  let most = max(max(abs(h.a), abs(h.b)), max(abs(h.c), abs(h.d)));
  let largest = max(max(most.x, most.y), max(most.z, most.w));
  let a = q8_quantise(h.a, largest);
  let b = q8_quantise(h.b, largest);
  let c = q8_quantise(h.c, largest);
  let d = q8_quantise(h.d, largest);
  let four = (a + b) + (c + d);
  let scale = largest / 127.0;
  x_codes[block] = vec4<u32>(q8_word(a), q8_word(b), q8_word(c), q8_word(d));
  x_factors[block] = vec2<f32>(scale, scale * f32((four.x + four.y) + (four.z + four.w)));
}
