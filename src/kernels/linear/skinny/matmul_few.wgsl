// y = x W^T for 2 to BATCH rows of x, if few workgroups hide each other's waiting (weights of not many rows, or many
// weight rows an invocation): x is staged seldom. Gated: y = activate(gate) * up of as many gates and ups.
// Map: linear/skinny/few_outputs. Grid: x and y over weight rows, z over splits of the columns. With more than one
// split, unfinished sums go to y, [split][row of x][weight row]; their reader adds them up.
// Error: f32 sums of k products, relative L2 below 1e-5 (with 8-bit activations: of the same sums in double).
// Read next: linear/skinny/few_outputs, linear/skinny/skinny_finish. Twins: matmul_skinny, matmul_few_pair.
//!import linear/skinny/skinny_bindings
//!import linear/skinny/few_outputs
//!import linear/skinny/skinny_blocks

const THREADS = ROWS * SLICES;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let group = id.y * GROUPS_X + id.x;
  if (group * GROUP_ROWS >= OUTPUTS) { return; }  // the grid, folded over y, may have more
  let rows = state.rows;
  let row = group * GROUP_ROWS + local % ROWS;
  let begin = id.z * SPLIT_UNITS;
  first_y = id.z * Y_SPLIT;
  make_outputs(group, min(row, OUTPUTS - 1u), min(row + OTHER_ROW, WEIGHT_ROWS - 1u), begin, min(begin + SPLIT_UNITS, UNITS),
               local, rows);
  if (HAS_Q8) { store_blocks(group, local, rows); }
}
