// The outputs of a workgroup of matmul_few: GROUP_ROWS outputs of each row of x.
// Map: an invocation owns PAIR weight rows (linear/skinny/weight_rows; with two, ROWS apart, or a gate and its up) and
// every SLICES-th unit of columns. It computes DEPTH units while the next DEPTH are under way, and holds the sums with
// all rows of x.
// Shared: CHUNK units of x (linear/skinny/skinny_x_staged); the next CHUNK units are under way meanwhile. At the end
// the slices' sums, four rows of x and two weight rows at a time.
// Read next: linear/skinny/few_two_rows, linear/skinny/skinny_join, linear/skinny/skinny_sums,
// linear/skinny/skinny_unit_q8.
//!import linear/skinny/weight_rows

const TURN = DEPTH * SLICES;  // units of a turn of the loop

// Outputs `group` * GROUP_ROWS.., over the units from `begin` to `end`. `row` and `other_row`: the invocation's weight
// rows. No compiler knows `begin`, so that no driver unrolls the loops: a step of many kernels then waits for their
// instructions. Contains barriers: every invocation of the workgroup calls it.
fn make_outputs(group: u32, row: u32, other_row: u32, begin: u32, end: u32, local: u32, rows: u32) {
  let slice = local / ROWS;
  var share = load_share(local, begin, rows);
  var w0 = fetch_rows(row, other_row, begin + slice);
  var w1: WeightRows;
  if (DEPTH == 2u) { w1 = fetch_rows(row, other_row, begin + slice + SLICES); }
  var sums: RowSums;
  for (var first = begin; first < end; first += CHUNK) {
    if (first != begin) { workgroupBarrier(); }  // all invocations have read the chunk before
    stage_share(local, share);
    workgroupBarrier();  // the chunk is complete
    if (CHUNK < SPLIT_UNITS) { share = load_share(local, first + CHUNK, rows); }
    let last = min(first + CHUNK, end);
    for (var u = first + slice; u < last; u += TURN) {
      let v0 = w0;
      let v1 = w1;
      w0 = fetch_rows(row, other_row, u + TURN);
      if (DEPTH == 2u) { w1 = fetch_rows(row, other_row, u + TURN + SLICES); }
      sums = add_rows(sums, v0, u - first, rows);
      if (DEPTH == 2u && u + SLICES < last) { sums = add_rows(sums, v1, u + SLICES - first, rows); }
    }
  }
  join_rows(sums, group, local, rows);
}
