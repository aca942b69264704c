// Eight dimensions as the f32 cache keeps them. The twin with f16: attention_cache_f16_store.wgsl.

fn eight_of(low: vec4f, high: vec4f) -> Eight { return Eight(low, high); }
