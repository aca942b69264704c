// The sums of THREADS_PER_ROW neighbouring invocations, by subgroup operations and one pass through workgroup memory.
// THREADS_PER_ROW is a power of two and at least the largest subgroup of the device. Twin of reduce_workgroup.

struct Place {
  rank: u32,     // this invocation among those of its rows
  section: u32,  // which group of rows within the workgroup
  subgroup: u32,
  subgroup_size: u32,
}

// One entry per subgroup; four invocations is the smallest subgroup there is.
var<workgroup> partial: array<vec2<f32>, WORKGROUP / 4u>;

// Places follow the subgroups, not local_invocation_index, whose mapping to subgroups is not defined.
fn find_place(local: u32, subgroup: u32, subgroup_invocation: u32, subgroup_size: u32) -> Place {
  let index = subgroup * subgroup_size + subgroup_invocation;
  return Place(index % THREADS_PER_ROW, index / THREADS_PER_ROW, subgroup, subgroup_size);
}

// Valid where place.rank is 0. Contains a barrier: every invocation of the workgroup calls it once.
fn reduce(sum: vec2<f32>, place: Place) -> vec2<f32> {
  let total = subgroupAdd(sum);
  if (place.rank % place.subgroup_size == 0u) { partial[place.subgroup] = total; }
  workgroupBarrier();  // partial is written by all subgroups, then read
  var all = total;
  if (place.rank == 0u) {
    let count = THREADS_PER_ROW / place.subgroup_size;
    for (var i = 1u; i < count; i++) { all += partial[place.subgroup + i]; }
  }
  return all;
}
