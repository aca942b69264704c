// Sampling, last dispatch: steps 4 to 7 of sample.h over the candidates, or the best of the segments of a greedy
// choice. One workgroup a row. All three are searches from the best token on (sample_search).
//!import common/mul_wide
//!import common/argmax_key
//!import sample/sample_place
//!import sample/sample_values
//!import sample/sample_finite
//!import sample/sample_bins
//!import sample/sample_reach
//!import sample/sample_search
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> params: array<SampleParams>;
@group(0) @binding(2) var<storage, read> between: array<u32>;
@group(0) @binding(3) var<storage, read> candidates: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> token: array<u32>;

const kTopK = 0u;
const kTopP = 1u;
const kDraw = 2u;

struct Cut {
  highest: f32,
  last: vec2u, // the worst token that stays
}

fn stays(cut: Cut, c: vec2u) -> bool { return is_left(c, cut.last); }

fn key_of(purpose: u32, cut: Cut, c: vec2u) -> vec2u { return c; }

fn share(place: Place, purpose: u32, cut: Cut, c: vec2u) -> u32 {
  let l = value_of(c.x);
  if (purpose == kTopK) {
    return 1u;
  }
  if (purpose == kTopP) {
    return weight_of(l, cut.highest, 1.0);
  }
  if (params[place.slot].min_p > 0.0 && exp(max(l - cut.highest, -60.0)) < params[place.slot].min_p) {
    return 0u;
  }
  return weight_of(l, cut.highest, params[place.slot].temperature);
}

fn goal_of(place: Place, purpose: u32, total: vec2u) -> vec2u {
  let slot = place.slot;
  if (purpose == kTopK) {
    return vec2u(params[slot].top_k, 0u);
  }
  if (purpose == kTopP) {
    // Without top-k the candidates are not the whole vocabulary, so their total is not the one.
    let meta_at = place.row * kMetaWords;
    let whole = vec2u(between[meta_at + kMetaTotalLow], between[meta_at + kMetaTotalHigh]);
    return top_p_target(select(total, whole, is_top_p_first(slot)), params[slot].top_p);
  }
  return add_64(scale_64(total, random_of(place, 0u)).xy, vec2u(1u, 0u));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  if (!chooses(group.y)) {
    return;
  }
  let place = place_of(group.y);
  let slot = place.slot;
  if (params[slot].greedy != 0u) {
    let best = greedy_token(t, place);
    if (t == 0u) {
      token[place.row] = finite_id(best);
    }
    return;
  }
  if (t == 0u) {
    found_token = vec2u();
  }
  var cut = Cut(bitcast<f32>(between[place.row * kMetaWords + kMetaHighest]), vec2u(0xFFFFFFFFu, 0xFFFFFFFFu));
  for (var purpose = kTopK; purpose <= kDraw; purpose++) { // a loop, as compilers would copy search() three times
    if ((purpose == kTopK && !is_top_k(params[slot].top_k)) || (purpose == kTopP && params[slot].top_p >= 1.0)) {
      continue;
    }
    cut.last = search(t, place, purpose, cut);
  }
  if (t == 0u) {
    token[place.row] = select(kNotFinite, min(cut.last.y, VOCAB_SIZE - 1u), is_finite(cut.highest));
  }
}
