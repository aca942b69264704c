// f16 in integers, since pack2x16float may round either way and may drop what is subnormal. The sign travels apart, so
// that zeros keep theirs. Infinite and NaN scales, which only a damaged file has, count as 2^16 and more: finite.

fn half_magnitude(half: u32) -> f32 {
  let exponent = (half >> 10u) & 31u;
  let mantissa = half & 0x3FFu;
  if (exponent == 0u) { return f32(mantissa) * 0x1p-24f; }
  return bitcast<f32>(((exponent + 112u) << 23u) | (mantissa << 13u));
}

// The bits of a finite f32 that is not negative, rounded to nearest even; infinity beyond f16's range.
fn round_to_half(bits: u32) -> u32 {
  if (bits >= 0x477FF000u) { return 0x7C00u; }
  if (bits < 0x33000001u) { return 0u; }  // at most half of the smallest
  let exponent = bits >> 23u;
  if (exponent < 113u) {  // subnormal in f16
    let mantissa = (bits & 0x7FFFFFu) | 0x800000u;
    let shift = 126u - exponent;
    let rest = mantissa & ((1u << shift) - 1u);
    let halfway = 1u << (shift - 1u);
    let whole = mantissa >> shift;
    return whole + select(0u, 1u, rest > halfway || (rest == halfway && (whole & 1u) == 1u));
  }
  return (bits + 0xFFFu + ((bits >> 13u) & 1u) - 0x38000000u) >> 13u;
}

// half * factor as f16, the largest where it is out of range. Exact before it is rounded: 11 bits times 8.
fn scaled_half(half: u32, factor: i32) -> u32 {
  let sign = (half & 0x8000u) ^ select(0u, 0x8000u, factor < 0);
  let bits = bitcast<u32>(half_magnitude(half) * f32(abs(factor)));
  return sign | min(round_to_half(bits), 0x7BFFu);
}
