// The end of a drafting step. One invocation in all: a handful of dependent words. Contract: draft.h, whose numbers the
// comments give. Consts besides those of step_choice: ROWS, HAS_NEXT, SIMULATED.
//!import common/philox
//!import step/step_choice
//!import step/draft_text
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read> choices: array<u32>;
@group(0) @binding(2) var<storage, read_write> text: DraftText;
@group(0) @binding(3) var<storage, read> next: array<u32>;
@group(0) @binding(4) var<storage, read_write> token: array<u32>;
@group(0) @binding(5) var<storage, read_write> ring: array<u32>;
@group(0) @binding(6) var<storage, read_write> counts: array<u32>;
@group(0) @binding(7) var<storage, read_write> recent: array<u32>;

const kRejected = 0xFFFFFFFDu;
const kNoDraft = 0xFFFFFFFCu;
const kOfDraft = 2u; // the number of a token's random number; sample_place has 0 and 1

fn is_right(choice: u32, draft: u32, generated: u32) -> bool {
  if (SIMULATED < 0.0) {
    return choice == draft && choice < VOCAB_SIZE;
  }
  let random = philox(vec4u(generated, kOfDraft, 0u, 0u), vec2u(state.seed_low, state.seed_high));
  return f32(random >> 8u) < SIMULATED * 16777216.0 && choice < VOCAB_SIZE;
}

@compute @workgroup_size(1)
fn main() {
  let begun = load_now();
  var now = begun;
  now.rows = 1u;
  var last = 0u;
  var counts_too = true;
  for (var i = 0u; i < ROWS; i++) {
    if (i > 0u) {
      counts_too = counts_too && i < begun.rows && is_right(choices[i - 1u], text.rows[i], now.generated);
    }
    if (now.stop_reason == kRunning && !counts_too) {
      ring[now.ring_index % TOKEN_RING] = select(kRejected, kNoDraft, i >= begun.rows);
      state.ring_index = now.ring_index + 1u;
    } else {
      let was_running = now.stop_reason == kRunning;
      end_step(now, choices[i]); // 1
      if (was_running) {
        now.pos += 1u;
        now.generated += 1u;
        now.stop_reason = state.stop_reason;
        text.tokens[text.base + now.pos] = choices[i];
        text.length = now.pos + 1u;
        last = i;
      }
    }
    now.ring_index += 1u;
  }
  if (begun.stop_reason != kRunning) {
    return;
  }
  token[0] = choices[last]; // 2
  if (HAS_NEXT) {
    text.rows[1] = next[last];
  }
  state.kept_row = last; // 3
}
