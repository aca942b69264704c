// expert_norm with row sums by a tree in workgroup memory. The rest is in expert_norm_row. Error: relative L2 below
// 1e-6.
//!import common/row_sum_portable
//!import common/q8_store
//!import moe/expert_norm_row
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> routes: array<u32>;
@group(0) @binding(2) var<storage, read> shared_x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> shared_gate: array<f32>;
@group(0) @binding(4) var<storage, read_write> residual: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> y_q8: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  normalise_sum(group.x, t, 0u, 1u);
}
