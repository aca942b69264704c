// f16 in integers, so that subnormal numbers are not dropped. The sign travels apart, so that zeros keep theirs.
// Infinite and NaN scales, which only a damaged file has, count as 2^16 and more: finite.
//!import common/f16_round

fn half_magnitude(half: u32) -> f32 {
  let exponent = (half >> 10u) & 31u;
  let mantissa = half & 0x3FFu;
  if (exponent == 0u) { return f32(mantissa) * 0x1p-24f; }
  return bitcast<f32>(((exponent + 112u) << 23u) | (mantissa << 13u));
}

// half * factor as f16, or the largest number if it is out of range. Exact before it is rounded: 11 bits times 8.
fn scaled_half(half: u32, factor: i32) -> u32 {
  let sign = (half & 0x8000u) ^ select(0u, 0x8000u, factor < 0);
  return sign | min(f16_bits(half_magnitude(half) * f32(abs(factor))), 0x7BFFu);
}
