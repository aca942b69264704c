// y = x W^T for 2 to BATCH rows of x and weights of not many rows, where few workgroups hide each other's waiting: x is
// staged seldom. Gated: y = activate(gate) * up of as many gates and ups.
// Grid: x and y over weight rows, z over splits of the columns. With more than one of those, sums go to y as they are,
// [split][row of x][weight row]; whoever reads them adds them up.
// Map: a workgroup makes ROWS (ungated: ROWS * PAIR) outputs of each row of x. An invocation owns one weight row, with PAIR two
// of them two (ROWS apart, or a gate and its up), and every SLICES-th unit of columns, two of which are computed while the
// next two are under way; it holds the sums with all rows of x.
// Shared: CHUNK units of x (linear/skinny/skinny_x_staged), the next of which are under way while these are used; at the end
// the slices' sums, four rows of x at a time.
// Error: f32 sums of k products, relative L2 below 1e-5 (with 8-bit activations: of the same sums in double).
// Read next: linear/skinny/skinny_sums, linear/skinny/skinny_unit_q8, linear/skinny/skinny_finish. Twin: matmul_skinny.
//!import linear/skinny/skinny_bindings
//!import linear/skinny/skinny_sums
//!import linear/skinny/skinny_finish

const THREADS = ROWS * SLICES;
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

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let group = id.y * GROUPS_X + id.x;
  if (group * GROUP_ROWS >= OUTPUTS) { return; }  // the grid, folded over y, may have more
  let rows = state.rows;
  let slice = local / ROWS;
  let row = min(group * GROUP_ROWS + local % ROWS, OUTPUTS - 1u);
  let other_row = min(group * GROUP_ROWS + local % ROWS + OTHER_ROW, WEIGHT_ROWS - 1u);
  // No compiler knows id.z, so that no driver unrolls the loops: a step of many kernels then waits for their instructions.
  let begin = id.z * SPLIT_UNITS;
  let end = min(begin + SPLIT_UNITS, UNITS);
  first_y = id.z * Y_SPLIT;
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
  if (HAS_Q8) { store_blocks(group, local, rows); }
}
