// y = x W^T of a row's experts, for x of any length, on any device: the row of the table that checks the others.
// Map: as matvec_portable: a section of THREADS_PER_ROW invocations makes two outputs, sharing the columns in eights.
// Shared: one partial sum per invocation (linear/matvec/reduce_workgroup). Error: relative L2 below 1e-5.
// Read next: moe/expert_place, linear/matvec/matvec_portable.
//!import moe/expert_bindings
//!import moe/expert_of
//!import moe/expert_place
//!import linear/weights/format
//!import linear/x
//!import linear/matvec/reduce_workgroup

fn dot8(w: mat2x4<f32>, v: mat2x4<f32>) -> f32 { return dot(w[0], v[0]) + dot(w[1], v[1]); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let expert = expert_of(group);
  if (!is_in_piece(expert)) { return; }
  let place = find_place(local);
  let first = 2u * (group.x * (WORKGROUP / THREADS_PER_ROW) + place.section);
  // Outputs past the end repeat the last one and are not written.
  let own = weight_row(min(first, kOutputs - 1u), expert) - PIECE_FIRST;
  let next = weight_row(min(first + 1u, kOutputs - 1u), expert) - PIECE_FIRST;
  let x_row = x_row_of(group);
  var sum = vec2<f32>(0.0);
  for (var i = place.rank; 8u * i < K; i += THREADS_PER_ROW) {
    let v = x8(x_row, i);
    sum += vec2<f32>(dot8(weight8(own, i), v), dot8(weight8(next, i), v));
  }
  let total = reduce(sum, place);
  if (place.rank == 0u) {
    store_output(group, first, expert, total.x);
    store_output(group, first + 1u, expert, total.y);
  }
}
