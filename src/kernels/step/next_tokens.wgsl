// The token after each row of a step. An invocation makes one; no memory is shared. Contract: draft.h.
//!import common/step_state
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> chosen: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let row = id.x;
  if (row >= state.rows) {
    return;
  }
  if (HAS_CHOSEN && row + 1u == state.rows) {
    out[row] = chosen[0];
  } else {
    out[row] = tokens[row + 1u];
  }
}
