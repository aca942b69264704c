// f32 -> f16 bits, rounded to nearest even, subnormals and infinities included; bit for bit base/half.h.
// pack2x16float may round either way (WebGPU leaves it to the driver), which would make a cache differ from
// device to device.
fn f16_bits(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let sign = (bits >> 16u) & 0x8000u;
  let magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) { // NaN
    return sign | 0x7E00u;
  }
  if (magnitude >= 0x477FF000u) { // rounds past 65504
    return sign | 0x7C00u;
  }
  if (magnitude < 0x33000001u) { // at most half of the smallest subnormal
    return sign;
  }
  let exponent = magnitude >> 23u;
  if (exponent < 113u) { // subnormal in f16
    let mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    let shift = 126u - exponent;
    let rest = mantissa & ((1u << shift) - 1u);
    let halfway = 1u << (shift - 1u);
    let cut = mantissa >> shift;
    let up = rest > halfway || (rest == halfway && (cut & 1u) == 1u);
    return sign | (cut + select(0u, 1u, up));
  }
  let rounded = magnitude + 0xFFFu + ((magnitude >> 13u) & 1u);
  return sign | ((rounded - 0x38000000u) >> 13u);
}

fn pack_f16(values: vec2f) -> u32 { return f16_bits(values.x) | (f16_bits(values.y) << 16u); }
