// The end of a drafting step. One invocation in all: a handful of dependent words. Contract: draft.h, whose numbers the
// comments give.
//!import step/step_choice
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read> choices: array<u32>;
@group(0) @binding(2) var<storage, read_write> drafts: array<u32>;
@group(0) @binding(3) var<storage, read> next: array<u32>;
@group(0) @binding(4) var<storage, read_write> token: array<u32>;
@group(0) @binding(5) var<storage, read_write> ring: array<u32>;
@group(0) @binding(6) var<storage, read_write> counts: array<u32>;
@group(0) @binding(7) var<storage, read_write> recent: array<u32>;

const kRejected = 0xFFFFFFFDu;

@compute @workgroup_size(1)
fn main() {
  let begun = load_now();
  let first = choices[0];
  let was_right = begun.rows == 2u && first == drafts[1] && first < VOCAB_SIZE;
  var now = begun;
  now.rows = 1u;
  end_step(now, first); // 1
  now.ring_index += 1u;
  now.pos += 1u;
  now.generated += 1u;
  now.stop_reason = state.stop_reason;
  let runs = now.stop_reason == kRunning;
  if (runs && !was_right) { // 2
    ring[now.ring_index % TOKEN_RING] = kRejected;
    state.ring_index = now.ring_index + 1u;
  } else {
    end_step(now, choices[1]);
  }
  if (begun.stop_reason != kRunning) {
    return;
  }
  let last = select(0u, 1u, runs && was_right);
  token[0] = choices[last]; // 3
  drafts[1] = next[last];
  state.kept_row = last; // 4
}
