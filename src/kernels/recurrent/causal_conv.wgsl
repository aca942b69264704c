// Causal depthwise convolution. One workgroup makes WORKGROUP * 4 consecutive channels of one row (y of the grid), one
// invocation makes four. With IS_SINGLE each run is one row, and the invocation moves the state of its channels on;
// otherwise causal_conv_state does, in a dispatch after this one. Shared: the q8 blocks (common/q8_store, with its
// barriers). Error: relative L2 < 1e-6.
//!import recurrent/runs_one
//!import common/q8_store
//!import common/f16_store
//!import recurrent/causal_conv_output
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>; // [CHANNELS, KERNEL], then the biases
@group(0) @binding(3) var<storage, read_write> kept: array<f32>; // [slots, KERNEL - 1, CHANNELS]
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> y_q8: array<u32>;
@group(0) @binding(6) var<storage, read_write> y_f16: array<vec2<u32>>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = group.y;
  let run = run_of_row(row);
  let first = (group.x * WORKGROUP + t) * 4u;
  var values = vec4f();
  for (var j = 0u; j < 4u; j++) {
    let channel = first + j;
    if (channel < CHANNELS) {
      values[j] = output_at(run, row, channel);
      if (HAS_F32) { y[row * CHANNELS + channel] = values[j]; }
    }
  }
  if (HAS_F16 && first < CHANNELS) { store_f16_quad(row, first, values); }
  if (HAS_Q8) {
    store_q8(t, (row * CHANNELS + first) / 4u, values, first < CHANNELS);
  }
}
