// The sum over a workgroup's WORKGROUP invocations (a power of two), for every invocation: a tree in workgroup
// memory. Must be called in uniform control flow; a second time only after
// a barrier.
var<workgroup> row_partials: array<f32, WORKGROUP>;

fn row_sum(t: u32, subgroup: u32, subgroup_size: u32, value: f32) -> f32 {
  row_partials[t] = value;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (t < half) {
      row_partials[t] += row_partials[t + half];
    }
    workgroupBarrier(); // the next level reads what this one wrote
  }
  return row_partials[0];
}
