// Shared by matmul_skinny and matmul_few: weights past the end, and the step from the slices' sums to outputs. Bindings
// and fragments of the entry: linear/skinny/skinny_finish, which has finish_output(). Consts: UNITS, ROWS, SLICES,
// PAIR, THREADS, GATED.
//!import linear/skinny/skinny_sums

const JOINED = select(ROWS * min(PAIR, 2u), ROWS, GATED);  // outputs of one or two weight rows an invocation
const OTHERS = min(PAIR - 1u, 1u) * THREADS;                // where the second's sums lie

// Past the end the last row or unit is loaded again.
fn fetch_at(row: u32, u: u32) -> Fetched { return fetch(row, min(u, UNITS - 1u)); }

// Adds up the sums of all slices; neighbours make neighbouring outputs. `first`: the first row of x in `four`.
// `output`: the first of the workgroup's outputs.
fn join(four: Four, first: u32, output: u32, group: u32, local: u32, rows: u32) {
  workgroupBarrier();  // all invocations have read the words before
  shared_words[local] = bitcast<vec4<u32>>(four.own);
  if (PAIR > 1u) { shared_words[OTHERS + local] = bitcast<vec4<u32>>(four.other); }
  workgroupBarrier();  // all slices' sums are there
  for (var i = local; i < JOINED * 4u; i += THREADS) {
    let row = i % ROWS;
    let second = i / ROWS % (JOINED / ROWS);  // of the pair
    let j = i / JOINED;                       // of the four
    var sum = 0.0;
    var up = 0.0;
    for (var s = 0u; s < SLICES; s++) {
      sum += bitcast<f32>(shared_words[second * THREADS + s * ROWS + row][j]);
      if (GATED) { up += bitcast<f32>(shared_words[OTHERS + s * ROWS + row][j]); }
    }
    finish_output(group, output + second * ROWS + row, first + j, sum, up, rows);
  }
}
