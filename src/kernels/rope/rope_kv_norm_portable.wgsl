// Normalises the heads of q and k, rotates them, and puts q into q_out and k and v into the cache; sums by a tree in
// workgroup memory. The rest is in rope_kv_head. Error: relative L2 below 1e-6 (q_out, an f32 cache).
//!import common/one_sequence
//!import common/mul_wide
//!import common/sincos
//!import common/f16_round
//!import common/row_sum_portable
//!import rope/rope_kv_pair
//!import rope/rope_kv_head
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<vec2u>; // (low, high) of each pair's step
@group(0) @binding(3) var<storage, read_write> q_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> k_cache: array<u32>; // f16 pairs, or the bits of f32
@group(0) @binding(5) var<storage, read_write> v_cache: array<u32>;
@group(0) @binding(6) var<storage, read> norms: array<f32>; // of q, of k

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  make_head(group.y, group.x, t, 0u, 1u);
}
