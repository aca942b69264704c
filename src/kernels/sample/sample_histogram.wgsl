// Sampling, second dispatch: how many tokens, and how much weight at temperature 1, lie in each bin of distance to
// the highest l. One workgroup takes SEGMENT consecutive tokens of a row, sums in workgroup memory (sample_bins), then
// adds its bins to the device's. Integers: exact in any order.
//!import common/mul_wide
//!import sample/sample_place
//!import sample/sample_values
//!import sample/sample_bins
//!import sample/sample_highest
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> params: array<SampleParams>;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> segment_max: array<f32>;
@group(0) @binding(4) var<storage, read_write> histogram: array<atomic<u32>>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  if (!chooses(group.y)) {
    return;
  }
  let place = place_of(group.y);
  if (params[place.slot].greedy != 0u) {
    return;
  }
  let highest = highest_l(t, place);
  clear_bins(t);
  let first = group.x * SEGMENT;
  for (var id = first + t; id < min(first + SEGMENT, VOCAB_SIZE); id += WORKGROUP) {
    let l = logits[place.row * VOCAB_SIZE + id];
    add_to_bin(bin_of(l, highest), 1u, vec2u(weight_of(l, highest, 1.0), 0u));
  }
  workgroupBarrier(); // the workgroup's bins are complete
  let bins_at = place.row * kHistogramWords;
  for (var bin = t; bin < kBins; bin += WORKGROUP) {
    let count = bin_sum(bin, true).x;
    if (count == 0u) {
      continue;
    }
    let weight = bin_sum(bin, false);
    atomicAdd(&histogram[bins_at + bin], count);
    let before = atomicAdd(&histogram[bins_at + kBins + bin], weight.x);
    atomicAdd(&histogram[bins_at + 2u * kBins + bin], weight.y + select(0u, 1u, before + weight.x < before));
  }
}
