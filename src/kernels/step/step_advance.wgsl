// The end of a prefill chunk that does not sample: pos moves on by rows. One invocation in all. Contract: step.h.
//!import common/step_state
@group(0) @binding(0) var<storage, read_write> state: StepState;

@compute @workgroup_size(1)
fn main() {
  if (state.stop_reason == 0u) { // kRunning
    state.pos += state.rows;
    state.kept_row = 0u;
  }
}
