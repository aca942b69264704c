// Keys and values stored as f32. One element is eight dimensions. The twin with f16: attention_cache_f16.wgsl.
struct Eight {
  low: vec4f,
  high: vec4f,
}

fn low4(e: Eight) -> vec4f {
  return e.low;
}

fn high4(e: Eight) -> vec4f {
  return e.high;
}
