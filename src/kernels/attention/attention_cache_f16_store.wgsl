// Eight dimensions as the f16 cache keeps them. The twin with f32: attention_cache_f32_store.wgsl.
//!import common/f16_round

fn eight_of(low: vec4f, high: vec4f) -> Eight {
  return vec4<u32>(pack_f16(low.xy), pack_f16(low.zw), pack_f16(high.xy), pack_f16(high.zw));
}
