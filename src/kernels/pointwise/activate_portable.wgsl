// y = activation(x), chosen by ACTIVATE: those of common/activate, and 4, tanh. One workgroup makes WORKGROUP
// consecutive values of one row (y of the grid), one invocation one value. Nothing is shared. Error: relative L2 below
// 1e-6.
//!import common/activate
@group(0) @binding(0) var<storage, read_write> x: array<f32>;

// tanh that needs only exp: WGSL's own may be as coarse as 2^-11. Beyond 15 it is 1 in f32.
fn tanh_of(value: f32) -> f32 {
  let e = exp(2.0 * clamp(value, -15.0, 15.0));
  let near = value * (1.0 - value * value * (1.0 / 3.0 - value * value * (2.0 / 15.0 - value * value * (17.0 / 315.0))));
  return select((e - 1.0) / (e + 1.0), near, abs(value) < 0.1);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  if (column >= N) { return; }
  let value = x[group.y * N + column];
  if (ACTIVATE == 4u) {
    x[group.y * N + column] = tanh_of(value);
  } else {
    x[group.y * N + column] = activate(value);
  }
}
