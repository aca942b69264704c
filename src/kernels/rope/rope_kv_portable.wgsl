// Rotates q and k, and puts q into q_out and k and v into the cache. One invocation makes two neighbouring values of
// one head of one row (y of the grid); the rest is in rope_kv_pair. Error: q_out and an f32 cache, absolute 4e-7 of the
// pair's length; an f16 cache, rounded to nearest even.
//!import common/one_sequence
//!import common/mul_wide
//!import common/sincos
//!import common/f16_round
//!import rope/rope_kv_pair
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<vec2u>; // (low, high) of each pair's step
@group(0) @binding(3) var<storage, read_write> q_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> k_cache: array<u32>; // f16 pairs, or the bits of f32
@group(0) @binding(5) var<storage, read_write> v_cache: array<u32>;

fn value_of(head: u32, base: u32, d: u32) -> f32 {
  return qkv[base + d];
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= kHeads * kPairs) {
    return;
  }
  make_pair(id.y, id.x / kPairs, id.x % kPairs * 2u);
}
