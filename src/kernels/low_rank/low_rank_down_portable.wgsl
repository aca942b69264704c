// low = A x of a row's adapter, sums by a tree in workgroup memory. Grid: numbers of a row's `low`, rows. Shared: the
// partial sums (common/row_sum_portable). Error: relative L2 below 1e-5.
//!import low_rank/rows_one
//!import low_rank/x_f32
//!import common/row_sum_portable
//!import low_rank/low_rank_down_row
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> adapters: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> x: array<XElement>;
@group(0) @binding(3) var<storage, read> x_scales: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read> square_sums: array<f32>;
@group(0) @binding(5) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> low: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  make_low(group.x, group.y, t, 0u, 1u);
}
