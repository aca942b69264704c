// A greedy step's end and the next one's input in one dispatch of one workgroup: the best of COUNT bests (Linear::best)
// is the token, the step state moves on by it, and its embedding and first norm are made. Values that do not depend on
// the token are loaded before the first barrier: a round trip to memory costs as much as ten barriers. Contract:
// next.h. Error: embed_norm_row.
//!import sample/sample_argmax_best
//!import sample/sample_finite
//!import step/step_move
//!import embed/embed_norm_row

@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read> bests: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> ring: array<u32>;
@group(0) @binding(3) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> scales: array<u32>;
@group(0) @binding(5) var<storage, read> norm_weight: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> y_q8: array<u32>;

const kBestsEach = (COUNT + WORKGROUP - 1u) / WORKGROUP;
var<workgroup> stops: atomic<u32>; // 1: the token is a stop token

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) t: u32) {
  if (t == 0u) { atomicStore(&stops, 0u); }
  var best = kNoneBest;
  for (var e = 0u; e < kBestsEach; e++) {
    best = better(best, bests[min(t + e * WORKGROUP, COUNT - 1u)]); // the last one again changes nothing
  }
  let gains = load_norm_weight(t);
  let now = load_now();
  let stop_count = select(min(state.stop_token_count, MAX_STOP_TOKENS), 0u, state.ignore_stop != 0u);
  let stop_token = state.stop_tokens[t % MAX_STOP_TOKENS];

  let token = finite_id(workgroup_best(t, best));
  if (t < stop_count && token == stop_token) { atomicStore(&stops, 1u); }
  embed_norm(t, token, gains); // its first barrier comes after every load of the state and after `stops`
  if (t == 0u) { move_on(now, token, atomicLoad(&stops) == 1u); }
}
