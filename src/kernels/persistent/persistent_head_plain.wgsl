// Heads of q and k that are rotated as they come. Twin with the same functions: persistent_head_norms.

fn head_weights(h: u32, places: vec2u) -> vec2f { return vec2f(1.0); }
fn weigh_pair(h: u32, pair: u32, pair_values: vec2f, weights: vec2f) -> vec2f { return pair_values; }
fn make_head_factors(thread: u32) {}
fn normed_head(h: u32, quad: vec4f) -> vec4f { return quad; }
