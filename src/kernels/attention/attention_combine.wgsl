// Joins the splits of one query head (see attention_output_partial.wgsl for the layout).
// One workgroup: one query head of one row of q (y of the grid). PARTS invocations share a dimension, each sums every PARTS-th split; the loads of
// an invocation do not depend on one another. Splits that had no keys are read, since the buffer holds them, but
// not used.
//!import attention/attention_decode_range
//!import attention/attention_output_y
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> partials: array<f32>;
@group(0) @binding(2) var<storage, read> sinks: array<f32>;
@group(0) @binding(3) var<storage, read_write> result: array<f32>;
@group(0) @binding(4) var<storage, read_write> y_q8: array<u32>;

var<workgroup> highest_of: array<f32, SPLITS>;
var<workgroup> sum_of: array<f32, SPLITS>;
var<workgroup> gathered: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let head = group.y * N_HEADS + group.x;
  let keys = keys_of_row(group.y);
  let used = (keys.end - keys.begin - 1u) / keys_per_split(keys) + 1u;
  for (var s = thread; s < SPLITS; s += WORKGROUP) {
    let pair = SPLITS * ALL_HEADS * HEAD_DIM + (s * ALL_HEADS + head) * 2u;
    highest_of[s] = select(kLowest, partials[pair], s < used);
    sum_of[s] = select(0.0, partials[pair + 1u], s < used);
  }
  workgroupBarrier();

  var highest = kLowest;
  for (var s = 0u; s < SPLITS; s++) {
    highest = max(highest, highest_of[s]);
  }
  var sum = 0.0;
  for (var s = 0u; s < SPLITS; s++) {
    sum += sum_of[s] * exp2(highest_of[s] - highest);
  }

  let part = thread / LANES;
  let lane = thread % LANES;
  for (var first = 0u; first < HEAD_DIM; first += LANES) {
    let d = first + lane;
    var weighted = 0.0;
    for (var i = 0u; i < (SPLITS + PARTS - 1u) / PARTS; i++) {
      let s = min(i * PARTS + part, SPLITS - 1u);
      let value = partials[(s * ALL_HEADS + head) * HEAD_DIM + min(d, HEAD_DIM - 1u)];
      weighted += select(0.0, value * exp2(highest_of[s] - highest), i * PARTS + part < used);
    }
    gathered[thread] = weighted;
    workgroupBarrier();
    if (part == 0u && d < HEAD_DIM) {
      for (var p = 1u; p < PARTS; p++) {
        weighted += gathered[p * LANES + lane];
      }
      put(0u, head, 0u, d, weighted, highest, sum);
    }
    workgroupBarrier();
  }
  finish(thread, head, 1u);
}
