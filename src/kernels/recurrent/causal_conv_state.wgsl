// The state of a causal convolution after a step: the last KERNEL - 1 inputs of each run. One invocation moves one
// channel of one run (y of the grid) on. Exact.
//!import recurrent/runs_one
//!import recurrent/causal_conv_input
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> kept: array<f32>; // [slots, KERNEL - 1, CHANNELS]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let channel = id.x;
  let run = run_at(id.y);
  if (channel >= CHANNELS || run.rows == 0u || !run.advances) {
    return;
  }
  // ascending: it reads after the place that it writes
  for (var i = 0u; i < kKept; i++) {
    kept[kept_at(run.slot, i, channel)] = earlier_input(run, run.rows - 1u, kKept - 1u - i, channel);
  }
}
