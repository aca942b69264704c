// The samplers of more.h, before prepare: the list of what is added to logits. One workgroup a row copies the request's
// biases, then adds points 3a and 3b. Shared: the history's tokens, how long each position matches, the list's length.
//!import common/mul_wide
//!import sample/sample_place
//!import sample/sample_stops
//!import sample/sample_values
//!import sample/more_state
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> params: array<SampleParams>;
@group(0) @binding(2) var<storage, read> bias: array<vec2u>;     // (token, bits of an f32)
@group(0) @binding(3) var<storage, read> more: array<u32>;       // MoreState
@group(0) @binding(4) var<storage, read> breakers: array<u32>;   // a bit a token
@group(0) @binding(5) var<storage, read_write> list: array<vec2u>;

const kMinusInfinity = 0xFF800000u;

var<workgroup> tokens: array<u32, HISTORY>;
var<workgroup> lengths: array<u32, HISTORY>;
var<workgroup> entries: atomic<u32>;

fn is_breaker(slot: u32, token: u32) -> bool {
  return token >= VOCAB_SIZE || ((breakers[slot * BREAKER_WORDS + token / 32u] >> (token % 32u)) & 1u) != 0u;
}

fn match_length(slot: u32, i: u32, last: u32) -> u32 {
  var length = 0u;
  while (length < min(i, LONGEST)) {
    let token = tokens[last - length];
    if (tokens[i - 1u - length] != token || is_breaker(slot, token)) {
      break;
    }
    length++;
  }
  return length;
}

fn add(list_at: u32, token: u32, bits: u32) { list[list_at + atomicAdd(&entries, 1u)] = vec2u(token, bits); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  if (!chooses(group.y)) {
    return;
  }
  let place = place_of(group.y);
  let slot = place.slot;
  if (params[slot].greedy != 0u) {
    return;
  }
  let list_at = place.row * LIST_ENTRIES + 1u;
  let count = min(params[slot].bias_count, MAX_BIAS);
  for (var i = t; i < count; i += WORKGROUP) {
    list[list_at + i] = bias[slot * MAX_BIAS + i];
  }
  if (t == 0u) {
    atomicStore(&entries, count);
  }
  let seen = more[slot * kMoreWords + kMoreCount];
  let range = select(params[slot].dry_range, HISTORY, params[slot].dry_range == 0u);
  let n = select(0u, min(min(seen, HISTORY), range), params[slot].dry_multiplier > 0.0);
  for (var i = t; i < n; i += WORKGROUP) {
    tokens[i] = more[slot * kMoreWords + kMoreHistory + (seen - n + i) % HISTORY];
  }
  workgroupBarrier(); // `tokens` and `entries`
  for (var i = t; i < n; i += WORKGROUP) {
    lengths[i] = match_length(slot, i, n - 1u);
  }
  workgroupBarrier(); // `lengths`
  let allowed = params[slot].dry_allowed_length;
  for (var i = t; i < n; i += WORKGROUP) {
    let length = lengths[i];
    if (i == 0u || length < allowed) {
      continue;
    }
    var is_longest = true; // the first of the longest of this token
    for (var j = 1u; j < n && is_longest; j++) {
      is_longest = tokens[j] != tokens[i] || lengths[j] < length || (lengths[j] == length && j >= i);
    }
    if (is_longest) {
      let penalty = params[slot].dry_multiplier * pow(params[slot].dry_base, f32(length - allowed));
      add(list_at, tokens[i], bitcast<u32>(-min(penalty, kLimit)));
    }
  }
  if (generated_of(place) < params[slot].min_tokens) {
    for (var i = t; i < stop_count_of(place); i += WORKGROUP) {
      add(list_at, stop_token_of(place, i), kMinusInfinity);
    }
  }
  workgroupBarrier(); // all have added
  if (t == 0u) {
    list[list_at - 1u] = vec2u(atomicLoad(&entries), 0u);
  }
}
