// Rows of x beside rows of y. One workgroup makes WORKGROUP consecutive values of one row (y of the grid), one
// invocation one value. Nothing is shared. Exact.
@group(0) @binding(0) var<storage, read> x: array<f32>; // rows of X_STRIDE
@group(0) @binding(1) var<storage, read> y: array<f32>; // rows of Y_STRIDE
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, N]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  if (column >= N) { return; }
  if (column < X_COLUMNS) {
    out[group.y * N + column] = x[group.y * X_STRIDE + X_COLUMN + column];
  } else {
    out[group.y * N + column] = y[group.y * Y_STRIDE + Y_COLUMN + column - X_COLUMNS];
  }
}
