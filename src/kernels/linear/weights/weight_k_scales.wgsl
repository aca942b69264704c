// The header of q4_k and q5_k blocks, their first vec4: (d, dmin) as two f16, then twelve bytes of eight 6-bit
// scales and eight 6-bit minima: w = d * scale * q - dmin * minimum. Sub-blocks come in pairs, because the low and
// high nibbles of the same bytes belong to neighbouring sub-blocks.

struct PairScales {
  scale: vec2<f32>,    // d * scale of sub-blocks 2 * pair and 2 * pair + 1
  minimum: vec2<f32>,  // dmin * minimum
}

fn pair_scales(header: vec4<u32>, pair: u32) -> PairScales {
  let shift = 16u * (pair & 1u);
  let s = header.y >> shift;
  let m = header.z >> shift;
  let rest = header.w >> shift;
  let late = pair >= 2u;  // sub-blocks 4-7: four bits in the last word, two in the spare bits of the others
  let sc = select(s & 0x3f3fu, (rest & 0x0f0fu) | ((s >> 2u) & 0x3030u), late);
  let mn = select(m & 0x3f3fu, ((rest >> 4u) & 0x0f0fu) | ((m >> 2u) & 0x3030u), late);
  let d = unpack2x16float(header.x);
  return PairScales(d.x * vec2<f32>(f32(sc & 0xffu), f32(sc >> 8u)),
                    d.y * vec2<f32>(f32(mn & 0xffu), f32(mn >> 8u)));
}
