// RMSNorm with row sums by subgroup operations. One workgroup makes one row; the rest is in rms_norm_row.
// Shared: the partial sums (common/row_sum_subgroup), the q8 blocks (common/q8_store). Error: relative L2 below 1e-6.
//!import rms_norm/selected_row_last
//!import common/row_sum_subgroup
//!import common/q8_store
//!import common/f16_store
//!import rms_norm/rms_norm_row
@group(0) @binding(0) var<storage, read> state: RmsNormState;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read> add: array<f32>;
@group(0) @binding(3) var<storage, read> weight: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> y_q8: array<u32>;
@group(0) @binding(6) var<storage, read_write> y_f16: array<vec2<u32>>;
@group(0) @binding(7) var<storage, read> add_weight: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(subgroup_id) subgroup: u32,
        @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_invocation_id) subgroup_invocation: u32) {
  normalise_row(group.x, subgroup * subgroup_size + subgroup_invocation, subgroup, subgroup_size);
}
