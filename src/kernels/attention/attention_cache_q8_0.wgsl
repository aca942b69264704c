// Keys and values stored as q8_0: rows of D8 elements of eight signed bytes, then elements of four f16 scales. Twins:
// attention_cache_f16.wgsl, attention_cache_f32.wgsl, whose elements need no scale beside them. Contract: rope/rope.h,
// CacheView.
struct Eight {
  bytes: vec2u,
  scale: f32,
}

const kRowElements = D8 + (D8 + 15u) / 16u;

// For a place as the twins count it, in eights: the places of its eight bytes and of their scale.
fn bytes_place(at: u32) -> u32 { return at / D8 * kRowElements + at % D8; }
fn scales_place(at: u32) -> u32 { return at / D8 * kRowElements + D8 + at % D8 / 16u; }

// `scales`: the element at scales_place(at).
fn eight_from(at: u32, bytes: vec2u, scales: vec2u) -> Eight {
  let block = at % D8 / 4u;
  let pair = unpack2x16float(select(scales.x, scales.y, (block & 2u) != 0u));
  return Eight(bytes, select(pair.x, pair.y, (block & 1u) != 0u));
}

fn low4(e: Eight) -> vec4f {
  return vec4f(unpack4xI8(e.bytes.x)) * e.scale;
}

fn high4(e: Eight) -> vec4f {
  return vec4f(unpack4xI8(e.bytes.y)) * e.scale;
}

fn eight_if(e: Eight, is_some: bool) -> Eight {
  return Eight(e.bytes, select(0.0, e.scale, is_some));
}
