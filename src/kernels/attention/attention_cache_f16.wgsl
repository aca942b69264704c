// Keys and values stored as f16, two in a u32; read without the f16 feature. One element is eight dimensions.
// The twin with f32: attention_cache_f32.wgsl. Contract: rope/rope.h, CacheView.
alias Eight = vec4<u32>;

fn low4(e: Eight) -> vec4f {
  return vec4f(unpack2x16float(e.x), unpack2x16float(e.y));
}

fn high4(e: Eight) -> vec4f {
  return vec4f(unpack2x16float(e.z), unpack2x16float(e.w));
}

fn eight_if(e: Eight, is_some: bool) -> Eight { return select(Eight(), e, is_some); }
