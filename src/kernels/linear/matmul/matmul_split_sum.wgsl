// Adds up what matmul_matrix made of each split of the columns, then bias and residual.
// Map: a workgroup makes WORKGROUP * 4 outputs of one row of x (y of the grid), an invocation four. Needs a multiple of
// four weight rows. Error: f32 sums.
//!import linear/linear_epilogue
struct Params {
  rows: u32,
  first_row: u32,
  y_first: u32,
  y_stride: u32,
  y_split: u32,  // numbers between two splits
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partials: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let column = (group.x * WORKGROUP + t) * 4u;
  if (column >= params.rows) { return; }
  let at = (group.y * params.rows + column) / 4u;
  var sum = vec4<f32>();
  for (var split = 0u; split < SPLITS; split++) { sum += partials[split * (params.y_split / 4u) + at]; }
  let to = group.y * params.y_stride + params.y_first + column;
  finish(column, sum.x, to);
  finish(column + 1u, sum.y, to + 1u);
  finish(column + 2u, sum.z, to + 2u);
  finish(column + 3u, sum.w, to + 3u);
}
