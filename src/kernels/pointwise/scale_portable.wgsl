// x = FACTOR * x, then SOFTCAP * tanh(x / SOFTCAP) unless SOFTCAP is 0. One workgroup makes WORKGROUP consecutive
// values of one row (y of the grid), one invocation one value. Nothing is shared. Error: pointwise.h.
@group(0) @binding(0) var<storage, read_write> x: array<f32>;

// tanh that needs only exp: WGSL's own may be as coarse as 2^-11. Beyond 15 it is 1 in f32.
fn softcapped(value: f32) -> f32 {
  let e = exp(2.0 * clamp(value / SOFTCAP, -15.0, 15.0));
  return SOFTCAP * ((e - 1.0) / (e + 1.0));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  if (column >= N) { return; }
  let value = FACTOR * x[group.y * N + column];
  if (SOFTCAP > 0.0) {
    x[group.y * N + column] = softcapped(value);
  } else {
    x[group.y * N + column] = value;
  }
}
