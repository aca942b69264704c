// What a workgroup of matmul_few makes: ROWS (ungated: ROWS * PAIR) outputs of each row of x.
// Map: an invocation owns one weight row, with PAIR two of them two (ROWS apart, or a gate and its up), and every SLICES-th unit
// of columns, two of which are computed while the next two are under way; it holds the sums with all rows of x.
// Shared: CHUNK units of x (linear/skinny/skinny_x_staged), the next of which are under way while these are used; at the end
// the slices' sums, four rows of x at a time.
// Read next: linear/skinny/skinny_join, linear/skinny/skinny_sums, linear/skinny/skinny_unit_q8.
//!import linear/skinny/skinny_join

const BOTH = 2u * SLICES;  // units of a turn of the loop

// Outputs `group` * GROUP_ROWS.., of the units from `begin` to `end`. `row` and `other_row`: the invocation's weight rows. No
// compiler knows `begin`, so that no driver unrolls the loops: a step of many kernels then waits for their instructions.
// Contains barriers: every invocation of the workgroup calls it.
fn make_outputs(group: u32, row: u32, other_row: u32, begin: u32, end: u32, local: u32, rows: u32) {
  let slice = local / ROWS;
  var share = load_share(local, begin, rows);
  var w0 = fetch_at(row, begin + slice);
  var w1 = fetch_at(row, begin + slice + SLICES);
  var o0: Fetched;
  var o1: Fetched;
  if (PAIR == 2u) {
    o0 = fetch_at(other_row, begin + slice);
    o1 = fetch_at(other_row, begin + slice + SLICES);
  }
  var sums: Sums;
  for (var first = begin; first < end; first += CHUNK) {
    if (first != begin) { workgroupBarrier(); }  // nobody reads the chunk before any more
    stage_share(local, share);
    workgroupBarrier();  // the chunk is complete
    if (CHUNK < SPLIT_UNITS) { share = load_share(local, first + CHUNK, rows); }
    let last = min(first + CHUNK, end);
    for (var u = first + slice; u < last; u += BOTH) {
      let v0 = w0;
      let p0 = o0;
      let v1 = w1;
      let p1 = o1;
      w0 = fetch_at(row, u + BOTH);
      w1 = fetch_at(row, u + BOTH + SLICES);
      if (PAIR == 2u) {
        o0 = fetch_at(other_row, u + BOTH);
        o1 = fetch_at(other_row, u + BOTH + SLICES);
      }
      sums = add_unit(sums, v0, p0, u - first, rows);
      if (u + SLICES < last) { sums = add_unit(sums, v1, p1, u + SLICES - first, rows); }
    }
  }
  join(sums.a, 0u, group, local, rows);
  if (BATCH > 4u) { join(sums.b, 4u, group, local, rows); }
  if (BATCH > 8u) {
    join(sums.c, 8u, group, local, rows);
    join(sums.d, 12u, group, local, rows);
  }
}
