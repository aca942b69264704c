// y = x W^T for 2 to BATCH rows of x (z of the grid: the next BATCH rows): the weights are read once, as a matvec reads
// them. Gated: y = activate(gate) * up of as many gates and ups.
// Map: a workgroup makes ROWS (ungated: ROWS * PAIR) outputs of each row of x. An invocation owns one weight row, or
// with PAIR two (ROWS apart, or a gate and its up), and every SLICES-th unit of columns; it holds the sums with all
// rows of x.
// Shared: a chunk of SLICES * DEPTH units of x (linear/skinny/skinny_x_staged); at the end the slices' sums, four rows
// of x at a time. The weights of the next chunk are under way while one is computed.
// Error: f32 sums of k products, relative L2 below 1e-5 (with 8-bit activations: of the same sums in double).
// Read next: linear/skinny/skinny_sums, linear/skinny/skinny_unit_q8, linear/skinny/skinny_join.
//!import linear/skinny/skinny_bindings
//!import linear/skinny/skinny_join
//!import linear/skinny/skinny_blocks

const THREADS = ROWS * SLICES;
const CHUNK = SLICES * DEPTH;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let group = id.y * GROUPS_X + id.x;
  if (group * GROUP_ROWS >= OUTPUTS) { return; }  // the grid, folded over y, may have more
  first_x_row = id.z * BATCH;
  let rows = min(BATCH, state.rows - id.z * BATCH);
  let slice = local / ROWS;
  let row = min(group * GROUP_ROWS + local % ROWS, OUTPUTS - 1u);
  let other_row = min(group * GROUP_ROWS + local % ROWS + OTHER_ROW, WEIGHT_ROWS - 1u);
  var share = load_share(local, 0u, rows);
  var w0 = fetch_at(row, slice);
  var o0: Fetched;
  var w1: Fetched;
  var o1: Fetched;
  if (PAIR == 2u) { o0 = fetch_at(other_row, slice); }
  if (DEPTH == 2u) {
    w1 = fetch_at(row, slice + SLICES);
    if (PAIR == 2u) { o1 = fetch_at(other_row, slice + SLICES); }
  }
  var sums: Sums;
  for (var first = 0u; first < UNITS; first += CHUNK) {
    workgroupBarrier();  // all invocations have read the chunk before
    stage_share(local, share);
    workgroupBarrier();  // the chunk is complete
    let next = first + CHUNK;
    share = load_share(local, next, rows);
    let v0 = w0;
    let p0 = o0;
    w0 = fetch_at(row, next + slice);
    if (PAIR == 2u) { o0 = fetch_at(other_row, next + slice); }
    if (first + slice < UNITS) { sums = add_unit(sums, v0, p0, slice, rows); }
    if (DEPTH == 2u) {
      let v1 = w1;
      let p1 = o1;
      w1 = fetch_at(row, next + SLICES + slice);
      if (PAIR == 2u) { o1 = fetch_at(other_row, next + SLICES + slice); }
      if (first + SLICES + slice < UNITS) { sums = add_unit(sums, v1, p1, SLICES + slice, rows); }
    }
  }
  join(sums.a, 0u, 0u, group, local, rows);
  if (BATCH > 4u) { join(sums.b, 4u, 0u, group, local, rows); }
  if (BATCH > 8u) {
    join(sums.c, 8u, 0u, group, local, rows);
    join(sums.d, 12u, 0u, group, local, rows);
  }
  if (HAS_Q8) { store_blocks(group, local, rows); }
}
