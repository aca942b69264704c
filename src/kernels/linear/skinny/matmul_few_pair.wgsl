// y = x W^T for 2 to BATCH rows of x and two weights in different tile formats, the second's outputs after the first's:
// q and k beside v. Both may have a bias.
// Map: a workgroup makes outputs of one weight, linear/skinny/few_outputs. Grid: x over weight rows, the first's (in
// whole workgroups) before the second's.
// Error: as matmul_few.
// Read next: linear/skinny/few_outputs. Twins: matmul_few, linear/matvec/matvec_tile_pair.
//!import linear/skinny/skinny_pair_bindings
//!import linear/skinny/few_outputs
//!import linear/skinny/few_outputs as second_
//!import linear/skinny/skinny_finish

const THREADS = ROWS * SLICES;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let begin = id.z;  // 0, which no compiler knows
  let own = local % ROWS;
  if (id.x * GROUP_ROWS < FIRST_ROWS) {
    let row = id.x * GROUP_ROWS + own;
    make_outputs(id.x, row, row + OTHER_ROW, begin, UNITS, local, state.rows);
  } else {
    let row = id.x * GROUP_ROWS - FIRST_ROWS + own;
    second_make_outputs(id.x, min(row, SECOND_ROWS - 1u), min(row + OTHER_ROW, SECOND_ROWS - 1u), begin, UNITS, local, state.rows);
  }
}
