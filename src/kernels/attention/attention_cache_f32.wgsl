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

fn eight_if(e: Eight, is_some: bool) -> Eight {
  return Eight(select(vec4f(), e.low, is_some), select(vec4f(), e.high, is_some));
}
