// y = activation(x) * u. One workgroup makes WORKGROUP consecutive values of one row (y of the grid), one invocation
// one value. Nothing is shared. Error: relative L2 below 1e-6.
//!import common/activate
@group(0) @binding(0) var<storage, read> x: array<f32>; // rows of X_STRIDE
@group(0) @binding(1) var<storage, read> u: array<f32>; // rows of U_STRIDE
@group(0) @binding(2) var<storage, read_write> y: array<f32>; // [rows, N]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  if (column >= N) { return; }
  var value = x[group.y * X_STRIDE + X_COLUMN + column];
  if (ACTIVATE == 5u) {
    value = max(value, 0.0); // relu
  } else if (ACTIVATE != 0u) {
    value = activate(value);
  }
  y[group.y * N + column] = value * u[group.y * U_STRIDE + U_COLUMN + select(column, 0u, IS_ONE)];
}
