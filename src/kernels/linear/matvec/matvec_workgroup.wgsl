// y = x W^T for one row of x, shaped for a GPU without subgroups.
// Map: a workgroup is WORKGROUP / THREADS_PER_ROW sections; a section makes two outputs (or one gated output), its
// invocations sharing the columns in units of 32, so that neighbours read neighbouring 16 bytes of weights. x may be
// f32 or 8-bit blocks (linear/matvec/unit_x). Shared: one partial sum per invocation.
// Needs k a multiple of 32. Error: f32 sums of k products, relative L2 below 1e-5.
// Read next: linear/matvec/reduce_workgroup, linear/matvec/matvec_two_rows, linear/weights/README.md.
//!import linear/matvec/matvec_bindings
//!import linear/weights/format
//!import linear/matvec/unit_x
//!import linear/matvec/reduce_workgroup
//!import linear/matvec/matvec_two_rows

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let place = find_place(local);
  let index = (group.y * params.groups_x + group.x) * (WORKGROUP / THREADS_PER_ROW) + place.section;
  let rows = two_rows(index);
  var sum = vec2<f32>(0.0);
  for (var u = place.rank; u < params.units; u += THREADS_PER_ROW) {
    let v = load_x(0u, u);
    sum += vec2<f32>(dot_x(rows.x, u, v), dot_x(rows.y, u, v));
  }
  let total = reduce(sum, place);
  if (place.rank == 0u) { finish_two(index, total); }
}
