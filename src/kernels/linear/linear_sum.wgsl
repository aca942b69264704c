// Adds up what a product's workgroups made of each split of the columns; then bias and residual, or activate(sum), or
// the gate: y = activate(gate) * up. Map: a workgroup makes WORKGROUP * 4 outputs of one row of x (y of the grid), an
// invocation four. Error: f32 sums.
//!import linear/linear_epilogue
//!import common/activate
//!import common/f16_store
//!import common/q8_store
struct Params {
  rows: u32,       // weight rows of this piece
  first_row: u32,  // of this piece in the matrix
  y_first: u32,    // column of y where output 0 of this piece goes
  y_stride: u32,
  row_quads: u32,    // of the partial sums of a row of x, four numbers each
  split_quads: u32,  // of a split
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partials: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> y_f16: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read_write> y_q8: array<u32>;

fn sum_at(at: u32) -> vec4<f32> {
  var sum = vec4<f32>();
  for (var split = 0u; split < SPLITS; split++) { sum += partials[split * params.split_quads + at]; }
  return sum;
}

fn bias_quad(at: u32) -> vec4<f32> {
  if (!HAS_BIAS) { return vec4<f32>(); }
  return vec4<f32>(bias[at], bias[at + 1u], bias[at + 2u], bias[at + 3u]);
}

fn activated_quad(quad: u32) -> vec4<f32> {
  let x = sum_at(quad) + bias_quad(4u * (quad % params.row_quads));
  return vec4<f32>(activate(x.x), activate(x.y), activate(x.z), activate(x.w));
}

fn gated_quad(quad: u32, ups: u32) -> vec4<f32> {
  let up = sum_at(quad + ups) + bias_quad(4u * (quad % params.row_quads + ups));
  return activated_quad(quad) * up;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let outputs = select(params.rows, params.rows / 2u, GATED);
  let column = 4u * (group.x * WORKGROUP + t);
  let is_there = column < outputs;
  let at = group.y * params.row_quads + column / 4u;
  let to = group.y * params.y_stride + params.y_first + column;
  if (!GATED && ACTIVATE == 0u) {
    let sum = sum_at(at);
    for (var i = 0u; i < 4u; i++) {
      if (column + i < outputs) { finish(column + i, sum[i], to + i); }
    }
    return;
  }
  var value = vec4<f32>();
  if (is_there) {
    if (GATED) {
      value = gated_quad(at, outputs / 4u);
    } else {
      value = activated_quad(at);
    }
  }
  if (HAS_Q8) { store_q8(t, (group.y * outputs + column) / 4u, value, is_there); }
  if (HAS_F16 && is_there) { store_f16_quad(group.y, column, value); }
  if (HAS_F32 && is_there) {
    y[to] = value.x;
    y[to + 1u] = value.y;
    y[to + 2u] = value.z;
    y[to + 3u] = value.w;
  }
}
