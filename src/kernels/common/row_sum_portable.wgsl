// The sum over a workgroup's WORKGROUP invocations (a power of two), for every invocation: in two levels in workgroup
// memory, which takes fewer barriers than a tree. Must be called in uniform control flow; a second time only after
// a barrier.
const kSumParts = min(16u, WORKGROUP);
var<workgroup> row_partials: array<f32, WORKGROUP>;
var<workgroup> row_sums: array<f32, kSumParts>;

fn row_sum(t: u32, subgroup: u32, subgroup_size: u32, value: f32) -> f32 {
  row_partials[t] = value;
  workgroupBarrier();
  if (t < kSumParts) {
    var part = value;
    for (var i = t + kSumParts; i < WORKGROUP; i += kSumParts) {
      part += row_partials[i];
    }
    row_sums[t] = part;
  }
  workgroupBarrier(); // row_sums
  var sum = 0.0;
  for (var i = 0u; i < kSumParts; i++) {
    sum += row_sums[i];
  }
  return sum;
}
