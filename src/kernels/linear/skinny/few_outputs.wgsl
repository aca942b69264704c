// What a workgroup of matmul_few makes: ROWS (ungated: ROWS * PAIR) outputs of each row of x.
// Map: an invocation owns one weight row, with PAIR two of them two (ROWS apart, or a gate and its up), and every SLICES-th unit
// of columns, two of which are computed while the next two are under way; it holds the sums with all rows of x.
// Shared: CHUNK units of x (linear/skinny/skinny_x_staged), the next of which are under way while these are used; at the end
// the slices' sums, four rows of x at a time.
// The entry has finish_output() (linear/skinny/skinny_finish).
// Read next: linear/skinny/skinny_sums, linear/skinny/skinny_unit_q8.
//!import linear/skinny/skinny_sums

const BOTH = 2u * SLICES;  // units of a turn of the loop

// Past the end the last row or unit is loaded again.
fn fetch_at(row: u32, u: u32) -> Fetched { return fetch(row, min(u, UNITS - 1u)); }

// The sums of all slices, by neighbours of neighbouring outputs. `first`: the first row of x in `four`.
fn join(four: Four, first: u32, group: u32, local: u32, rows: u32) {
  workgroupBarrier();  // nobody reads what lies there any more
  shared_words[local] = bitcast<vec4<u32>>(four.own);
  if (PAIR == 2u) { shared_words[(PAIR - 1u) * THREADS + local] = bitcast<vec4<u32>>(four.other); }
  workgroupBarrier();  // all slices' sums are there
  for (var i = local; i < GROUP_ROWS * 4u; i += THREADS) {
    let row = i % ROWS;
    let second = i / ROWS % (GROUP_ROWS / ROWS);  // of the pair
    let j = i / GROUP_ROWS;                       // of the four
    var sum = 0.0;
    var up = 0.0;
    for (var s = 0u; s < SLICES; s++) {
      sum += bitcast<f32>(shared_words[second * THREADS + s * ROWS + row][j]);
      if (GATED) { up += bitcast<f32>(shared_words[(PAIR - 1u) * THREADS + s * ROWS + row][j]); }
    }
    finish_output(group, second * ROWS + row, first + j, sum, up, rows);
  }
}

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
