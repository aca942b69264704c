// The experts of one row and their weights: see moe/route.h for the formulas.
// Map: a workgroup makes one row (x of the grid); an invocation scores every WORKGROUP-th expert and finds its rank
// among all: as many experts go before it as choose better, or as well with a lower id. Ranks below N_USED are slots.
// Shared: scores, the numbers to choose by, groups' choices, partial results. Barriers: after each.
// Consts: N_EXPERTS, N_USED, SCORE (RouterScore), HAS_BIAS, GROUPS, GROUPS_USED, TWO_BEST, NORM, NORM_EPS, SCALE,
// HAS_SCALES.
// Error: relative L2 of the weights below 1e-5.
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read_write> routes: array<u32>;

const kGroupSize = N_EXPERTS / GROUPS;
const kPadded = (N_EXPERTS + 3u) & ~3u;  // the entries after the experts rank after all experts

var<workgroup> scores: array<f32, N_EXPERTS>;
var<workgroup> choices: array<u32, kPadded>;
var<workgroup> group_choices: array<u32, GROUPS>;
var<workgroup> partial: array<f32, WORKGROUP>;
var<workgroup> chosen: array<f32, N_USED>;
var<workgroup> chosen_scales: array<f32, N_USED>;

// A number that orders as f32 does, so that any two differ in order or are equal, NaN included.
fn order_of(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}
fn value_of(order: u32) -> f32 {
  return bitcast<f32>(select(~order, order & 0x7fffffffu, (order & 0x80000000u) != 0u));
}

fn is_before(choice: u32, id: u32, other: u32, other_id: u32) -> bool {
  return (choice > other) | ((choice == other) & (id < other_id));
}

// The largest logit and the sum of exp(logit - largest) over all experts, each by a tree. Contains barriers.
fn softmax_of_all(t: u32) -> vec2<f32> {
  var most = -3.4e38;
  for (var e = t; e < N_EXPERTS; e += WORKGROUP) { most = max(most, scores[e]); }
  partial[t] = most;
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();  // a level of the tree is there
    if (t < half) { partial[t] = max(partial[t], partial[t + half]); }
  }
  workgroupBarrier();  // the largest of all is first
  most = partial[0];
  workgroupBarrier();  // all invocations have read it
  var sum = 0.0;
  for (var e = t; e < N_EXPERTS; e += WORKGROUP) { sum += exp(scores[e] - most); }
  partial[t] = sum;
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();  // a level of the tree is there
    if (t < half) { partial[t] += partial[t + half]; }
  }
  workgroupBarrier();  // the sum of all is first
  return vec2<f32>(most, partial[0]);
}

fn group_choice(group: u32) -> u32 {
  var best = 0u;
  var second = 0u;
  for (var e = group * kGroupSize; e < (group + 1u) * kGroupSize; e++) {
    let choice = choices[e];
    second = max(second, min(best, choice));
    best = max(best, choice);
  }
  if (TWO_BEST) { return order_of(value_of(best) + value_of(second)); }
  return best;
}

// True if a group is among the GROUPS_USED best.
fn is_used(group: u32) -> bool {
  var before = 0u;
  for (var g = 0u; g < GROUPS; g++) {
    before += select(0u, 1u, is_before(group_choices[g], g, group_choices[group], group));
  }
  return before < GROUPS_USED;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = workgroup.x;
  for (var e = t; e < N_EXPERTS; e += WORKGROUP) { scores[e] = logits[row * N_EXPERTS + e]; }
  for (var e = N_EXPERTS + t; e < kPadded; e += WORKGROUP) { choices[e] = 0u; }
  workgroupBarrier();  // scores are logits
  var all = vec2<f32>(0.0, 1.0);
  if (SCORE == 0u) { all = softmax_of_all(t); }
  for (var e = t; e < N_EXPERTS; e += WORKGROUP) {
    var score = scores[e];
    if (SCORE == 0u) { score = exp(score - all.x) / all.y; }
    if (SCORE == 1u) { score = 1.0 / (1.0 + exp(min(-score, 87.0))); }
    scores[e] = score;
    var choice = score;
    if (HAS_BIAS) { choice += bias[e]; }
    choices[e] = order_of(choice);
  }
  workgroupBarrier();  // scores and choices are complete
  if (GROUPS > 1u) {
    for (var g = t; g < GROUPS; g += WORKGROUP) { group_choices[g] = group_choice(g); }
    workgroupBarrier();  // groups' choices are complete, and all invocations have read the experts'
    for (var e = t; e < N_EXPERTS; e += WORKGROUP) {
      if (!is_used(e / kGroupSize)) { choices[e] = 0u; }
    }
    workgroupBarrier();  // experts of other groups are last
  }
  let at = row * 2u * N_USED;
  for (var e = t; e < N_EXPERTS; e += WORKGROUP) {
    let choice = choices[e];
    var ranks = vec4<u32>(0u);  // four sums, so that a load does not wait for the one before
    for (var o = 0u; o < kPadded; o += 4u) {
      let others = vec4<u32>(choices[o], choices[o + 1u], choices[o + 2u], choices[o + 3u]);
      let is_lower = vec4<u32>(o, o + 1u, o + 2u, o + 3u) < vec4<u32>(e);
      ranks += select(vec4<u32>(0u), vec4<u32>(1u),
                      (others > vec4<u32>(choice)) | ((others == vec4<u32>(choice)) & is_lower));
    }
    let rank = (ranks.x + ranks.y) + (ranks.z + ranks.w);
    if (rank < N_USED) {
      chosen[rank] = scores[e];
      if (HAS_SCALES) { chosen_scales[rank] = scales[e]; }
      routes[at + rank] = e;
    }
  }
  workgroupBarrier();  // the chosen scores, best first
  if (t < N_USED) {
    var weight = chosen[t];
    if (SCORE == 2u) { weight = exp(weight - chosen[0]); }
    if (SCORE == 2u || NORM) {
      var sum = 0.0;
      for (var i = 0u; i < N_USED; i++) {
        sum += select(chosen[i], exp(chosen[i] - chosen[0]), SCORE == 2u);
      }
      weight /= sum + NORM_EPS;
    }
    weight *= SCALE;
    if (HAS_SCALES) { weight *= chosen_scales[t]; }
    routes[at + N_USED + t] = bitcast<u32>(weight);
  }
}
