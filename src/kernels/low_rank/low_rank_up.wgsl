// y = gain * y + B low + constant of a row's adapter. One workgroup makes WORKGROUP consecutive values of one row (y of
// the grid), one invocation one value. Nothing is shared. Error: relative L2 below 1e-6.
// Consts: COLUMNS, Y_STRIDE, and the consts of the fragment with `low_of`.
//!import low_rank/rows_one
//!import low_rank/low_of_product
//!import low_rank/adapted
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> adapters: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> low: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> tokens: array<u32>;
@group(0) @binding(4) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = group.y;
  let adapter = adapter_of(row);
  let column = group.x * WORKGROUP + t;
  if (adapter == 0u || column >= COLUMNS) { return; }
  let at = row * Y_STRIDE + column;
  y[at] = adapted(row, adapter, column, y[at]);
}
