// The samplers of more.h, after prepare. For SEGMENT consecutive tokens of a row: how many are not excluded, the sum of
// their distances to the highest l, and the sum of the distances' squares.
//!import common/mul_wide
//!import sample/sample_place
//!import sample/sample_values
//!import sample/sample_highest
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> params: array<SampleParams>;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> segment_max: array<f32>;
@group(0) @binding(4) var<storage, read_write> spread: array<f32>; // count, sum, sum of squares

var<workgroup> sums: array<vec3f, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  if (!chooses(group.y)) {
    return;
  }
  let place = place_of(group.y);
  if (params[place.slot].greedy != 0u || params[place.slot].top_n_sigma <= 0.0) {
    return;
  }
  let highest = highest_l(t, place);
  var sum = vec3f();
  let first = group.x * SEGMENT;
  for (var id = first + t; id < min(first + SEGMENT, VOCAB_SIZE); id += WORKGROUP) {
    let l = logits[place.row * VOCAB_SIZE + id];
    let distance = highest - l;
    sum += select(vec3f(), vec3f(1.0, distance, distance * distance), l > kExcluded);
  }
  sums[t] = sum;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (t < half) {
      sums[t] += sums[t + half];
    }
    workgroupBarrier(); // the next level reads what this one wrote
  }
  if (t == 0u) {
    let at = (place.row * SEGMENTS + group.x) * 3u;
    spread[at] = sums[0].x;
    spread[at + 1u] = sums[0].y;
    spread[at + 2u] = sums[0].z;
  }
}
