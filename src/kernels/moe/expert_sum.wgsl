// y = sum of weight * expert's output over a row's slots, and a shared expert's output: see moe/expert_sum.h.
// Map: a workgroup makes WORKGROUP values of a row (y of the grid), an invocation one. Error: relative L2 < 1e-6.
// Consts: N, N_USED, HAS_SHARED, HAS_GATE.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> routes: array<u32>;
@group(0) @binding(2) var<storage, read> shared_x: array<f32>;
@group(0) @binding(3) var<storage, read> shared_gate: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = group.y;
  let i = group.x * WORKGROUP + t;
  if (i >= N) { return; }
  var sum = 0.0;
  for (var slot = 0u; slot < N_USED; slot++) {
    let weight = bitcast<f32>(routes[(2u * row + 1u) * N_USED + slot]);
    sum += weight * x[(row * N_USED + slot) * N + i];
  }
  if (HAS_SHARED) {
    var value = shared_x[row * N + i];
    if (HAS_GATE) { value /= 1.0 + exp(min(-shared_gate[row], 87.0)); }
    sum += value;
  }
  y[row * N + i] = sum;
}
