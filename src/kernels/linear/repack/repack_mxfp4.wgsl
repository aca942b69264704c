// mxfp4: u8 exponent e, 16 bytes of nibbles that name levels of -12 to 12; w = 2^(e-128) * level, here scale * (level +
// 12) - 12 scale. Scales that f16 does not hold: below 2^-24 the levels are rounded to multiples of that, above 2^12
// the scale is that.
//!import linear/repack/repack_bytes

// Level + 12 of a nibble (formats/quant/tables.cpp), the level divided by 2^below and rounded to nearest even.
fn code_of(nibble: u32, below: u32) -> u32 {
  let levels = vec2<u32>(0x03020100u, 0x0C080604u);
  var level = (levels[(nibble >> 2u) & 1u] >> (8u * (nibble & 3u))) & 0xFFu;
  if (below > 0u) {
    let rest = level & ((1u << below) - 1u);
    let half = 1u << (below - 1u);
    level >>= below;
    level += select(0u, 1u, rest > half || (rest == half && (level & 1u) == 1u));
  }
  return select(12u + level, 12u - level, (nibble & 8u) != 0u);
}
fn codes_of(nibbles: u32, below: u32) -> u32 {
  return code_of(nibbles & 15u, below) | (code_of((nibbles >> 8u) & 15u, below) << 8u) |
         (code_of((nibbles >> 16u) & 15u, below) << 16u) | (code_of(nibbles >> 24u, below) << 24u);
}
fn all_codes(nibbles: vec4<u32>, below: u32) -> vec4<u32> {
  return vec4<u32>(codes_of(nibbles.x, below), codes_of(nibbles.y, below), codes_of(nibbles.z, below),
                   codes_of(nibbles.w, below));
}

fn read_unit(row_at: u32, u: u32) -> Unit {
  let at = row_at + 17u * u;
  let e = byte_at(at);
  let nibbles = words_at(at + 1u);
  let below = min(104u - min(e, 104u), 5u);  // 2^-24 is e = 104; five bits less leave nothing of 12
  let up = clamp(e, 104u, 140u) - 104u;      // of the scale, 2^(up - 24)
  // Subnormal below 2^-14; 12 is 1.5 * 2^3.
  let scale = select((up - 9u) << 10u, 1u << up, up < 10u);
  let minimum = select(((up - 6u) << 10u) | 0x200u, 12u << up, up < 7u);
  return Unit(all_codes(low_nibbles(nibbles), below), all_codes(high_nibbles(nibbles), below), scale | (minimum << 16u));
}
