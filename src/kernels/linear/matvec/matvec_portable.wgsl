// y = x W^T for one row of x of any length, on any device: the row of the table that checks the others.
// Map: a workgroup is WORKGROUP / THREADS_PER_ROW sections; a section makes two outputs (or one gated output), its
// invocations sharing the columns in eights. Shared: one partial sum per invocation (linear/matvec/reduce_workgroup).
// Error: f32 sums of k products, relative L2 below 1e-5.
// Read next: linear/linear_x_any, linear/matvec/matvec_two_rows, linear/weights/README.md.
//!import linear/matvec/matvec_bindings
//!import linear/weights/format
//!import linear/x
//!import linear/matvec/reduce_workgroup
//!import linear/matvec/matvec_two_rows

fn dot8(w: mat2x4<f32>, v: mat2x4<f32>) -> f32 { return dot(w[0], v[0]) + dot(w[1], v[1]); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let place = find_place(local);
  let index = (group.y * params.groups_x + group.x) * (WORKGROUP / THREADS_PER_ROW) + place.section;
  let rows = two_rows(index);
  var sum = vec2<f32>(0.0);
  for (var i = place.rank; 8u * i < params.k; i += THREADS_PER_ROW) {
    let v = x8(0u, i);
    sum += vec2<f32>(dot8(weight8(rows.x, i), v), dot8(weight8(rows.y, i), v));
  }
  let total = reduce(sum, place);
  if (place.rank == 0u) { finish_two(index, total); }
}
