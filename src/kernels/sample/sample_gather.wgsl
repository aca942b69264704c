// Sampling, third dispatch: finds the last bin that top-k (or without it, top-p) can reach into, and gathers the tokens
// of all bins up to it as candidates, in no particular order. One workgroup takes SEGMENT consecutive tokens of a row;
// each works out the last bin for itself. Shared: the bins (sample_bins), the workgroup's place among the candidates.
//!import common/mul_wide
//!import sample/sample_place
//!import sample/sample_values
//!import sample/sample_bins
//!import sample/sample_highest
//!import sample/sample_reach
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> params: array<SampleParams>;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> segment_max: array<f32>;
@group(0) @binding(4) var<storage, read> histogram: array<u32>;
@group(0) @binding(5) var<storage, read_write> candidates: array<vec2u>; // (order_of(l), id)
@group(0) @binding(6) var<storage, read_write> between: array<atomic<u32>>;

var<workgroup> gathered: atomic<u32>;
var<workgroup> first_place: u32;

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
  let highest = highest_l(t, place);
  let bins_at = place.row * kHistogramWords;
  for (var bin = t; bin < kBins; bin += WORKGROUP) {
    atomicStore(&bin_counts[bin], histogram[bins_at + bin]);
    atomicStore(&bin_lows[bin], histogram[bins_at + kBins + bin]);
    atomicStore(&bin_highs[bin], histogram[bins_at + 2u * kBins + bin]);
  }
  if (t == 0u) {
    atomicStore(&gathered, 0u);
  }
  scan_bins(t, false);
  let total = bins_total();
  var last_bin = kBins - 1u;
  if (is_top_k(top_k_of(slot))) { // top-p then needs the sum of all top-k tokens: it may not cut earlier
    scan_bins(t, true);
    last_bin = find_bin(t, true, vec2u(top_k_of(slot), 0u)).x;
  } else if (is_top_p_first(slot)) {
    last_bin = find_bin(t, false, top_p_target(total, params[slot].top_p)).x;
  }

  let logits_at = place.row * VOCAB_SIZE;
  let meta_at = place.row * kMetaWords;
  let first = group.x * SEGMENT;
  let end = min(first + SEGMENT, VOCAB_SIZE);
  var mine = 0u;
  for (var id = first + t; id < end; id += WORKGROUP) {
    if (bin_of(logits[logits_at + id], highest) <= last_bin) {
      mine++;
    }
  }
  var to = atomicAdd(&gathered, mine);
  workgroupBarrier(); // all have added
  if (t == 0u) {
    first_place = atomicAdd(&between[meta_at + kMetaCount], atomicLoad(&gathered));
  }
  workgroupBarrier();
  to += first_place;
  for (var id = first + t; id < end; id += WORKGROUP) {
    let l = logits[logits_at + id];
    if (bin_of(l, highest) <= last_bin) {
      candidates[logits_at + to] = vec2u(order_of(l), id);
      to++;
    }
  }
  if (group.x == 0u && t == 0u) {
    atomicStore(&between[meta_at + kMetaHighest], bitcast<u32>(highest));
    atomicStore(&between[meta_at + kMetaTotalLow], total.x);
    atomicStore(&between[meta_at + kMetaTotalHigh], total.y);
  }
}
