// The sum over a workgroup's WORKGROUP invocations, for every invocation: one subgroupAdd, one barrier, and every
// subgroup adds up the partial sums for itself. `t` is subgroup * subgroup_size + subgroup_invocation. Must be called
// in uniform control flow; a second time only after a barrier.
var<workgroup> row_partials: array<f32, WORKGROUP>; // one a subgroup; subgroups may be as small as one invocation

fn row_sum(t: u32, subgroup: u32, subgroup_size: u32, value: f32) -> f32 {
  let subgroup_invocation = t - subgroup * subgroup_size;
  let of_subgroup = subgroupAdd(value);
  if (subgroup_invocation == 0u) {
    row_partials[subgroup] = of_subgroup;
  }
  workgroupBarrier();
  var sum = 0.0;
  for (var i = subgroup_invocation; i < (WORKGROUP + subgroup_size - 1u) / subgroup_size; i += subgroup_size) {
    sum += row_partials[i];
  }
  return subgroupAdd(sum);
}
