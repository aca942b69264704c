// The sums of THREADS_PER_ROW neighbouring invocations, by a tree in workgroup memory. THREADS_PER_ROW is a power of
// two. Twin of reduce_subgroup, for devices without subgroups.

struct Place {
  rank: u32,     // this invocation among those of its rows
  section: u32,  // which group of rows within the workgroup
  local: u32,
}

var<workgroup> partial: array<vec2<f32>, WORKGROUP>;

fn find_place(local: u32) -> Place { return Place(local % THREADS_PER_ROW, local / THREADS_PER_ROW, local); }

// Valid where place.rank is 0. Contains barriers: every invocation of the workgroup calls it once.
fn reduce(sum: vec2<f32>, place: Place) -> vec2<f32> {
  partial[place.local] = sum;
  for (var reach = THREADS_PER_ROW / 2u; reach > 0u; reach /= 2u) {
    workgroupBarrier();  // the halves below are written by other invocations
    if (place.rank < reach) { partial[place.local] += partial[place.local + reach]; }
  }
  return partial[place.local];
}
