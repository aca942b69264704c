// The inner product of a row in a tile format, for kernels whose workgroup makes the outputs of a tile of 32 rows or of
// half of one (ROWS): an invocation owns one row, so that neighbours read neighbouring words, and every SLICES-th unit
// of 32 columns. The next DEPTH units (with two sums half as many of each) are loaded before the last ones are used,
// because one alone would wait for a whole memory latency.
// Consts: UNITS (of a row), ROWS, SLICES, SUMS (rows an invocation sums: 1 or 2), DEPTH (4 or 2). All shapes are
// constants, so that no address waits for a uniform. Read next: matvec/tile_x_q8, weights/README.md.
//!import weights/format
//!import matvec/tile_x

const THREADS = ROWS * SLICES;

struct Params {
  units: u32,  // what the fragments of weights/ ask for
}
const params = Params(UNITS);

// One partial sum (with a gate: two) per invocation.
var<workgroup> partial: array<f32, THREADS * SUMS>;

// Past the end of a row the last unit is loaded again, and not counted.
fn load_at(row: u32, u: u32) -> Words { return load_words(row, min(u, UNITS - 1u)); }
fn dot_at(w: Words, u: u32) -> f32 {
  let share = dot_unit(w, min(u, UNITS - 1u));
  return select(0.0, share, u < UNITS);
}

// This invocation's share of a row. The loads stand before the first use of any, without a branch between them: x in a
// loop of its own and the norm's sums before the weights cost 11 % of a 1B step on an H200 (1,537 to 1,711 tok/s).
// load_before() and stage_before() of the entry bring what it needs besides. `group`: which workgroup this is. Contains
// barriers: every invocation of the workgroup calls it once.
fn slice_sum(row: u32, local: u32, group: u32) -> f32 {
  const STEP = SLICES;
  let share = load_share(local);
  let early = load_before(row, local);
  var u = local / ROWS;
  var w0 = load_at(row, u);
  var w1 = load_at(row, u + STEP);
  var w2: Words;
  var w3: Words;
  if (DEPTH == 4u) {
    w2 = load_at(row, u + 2u * STEP);
    w3 = load_at(row, u + 3u * STEP);
  }
  stage_share(local, group, share);
  stage_before(local, early);
  workgroupBarrier();  // x is complete
  var sum = 0.0;
  for (; u + DEPTH * STEP < UNITS; u += DEPTH * STEP) {
    let next = u + DEPTH * STEP;
    let n0 = load_at(row, next);
    let n1 = load_at(row, next + STEP);
    if (DEPTH == 4u) {
      let n2 = load_at(row, next + 2u * STEP);
      let n3 = load_at(row, next + 3u * STEP);
      sum += dot_unit(w2, u + 2u * STEP) + dot_unit(w3, u + 3u * STEP);
      w2 = n2;
      w3 = n3;
    }
    sum += dot_unit(w0, u) + dot_unit(w1, u + STEP);
    w0 = n0;
    w1 = n1;
  }
  if (DEPTH == 4u) { sum += dot_at(w2, u + 2u * STEP) + dot_at(w3, u + 3u * STEP); }
  return sum + dot_at(w0, u) + dot_at(w1, u + STEP);
}

// The same of two rows at once, half as many units at a time.
fn slice_sums(row: u32, other: u32, local: u32, group: u32) -> vec2<f32> {
  const STEP = SLICES;
  const EACH = DEPTH / 2u;
  let share = load_share(local);
  let early = load_before(row, local);
  var u = local / ROWS;
  var w0 = load_at(row, u);
  var o0 = load_at(other, u);
  var w1: Words;
  var o1: Words;
  if (DEPTH == 4u) {
    w1 = load_at(row, u + STEP);
    o1 = load_at(other, u + STEP);
  }
  stage_share(local, group, share);
  stage_before(local, early);
  workgroupBarrier();  // x is complete
  var sum = vec2<f32>(0.0);
  for (; u + EACH * STEP < UNITS; u += EACH * STEP) {
    let next = u + EACH * STEP;
    let n0 = load_at(row, next);
    let m0 = load_at(other, next);
    if (DEPTH == 4u) {
      let n1 = load_at(row, next + STEP);
      let m1 = load_at(other, next + STEP);
      sum += vec2<f32>(dot_unit(w1, u + STEP), dot_unit(o1, u + STEP));
      w1 = n1;
      o1 = m1;
    }
    sum += vec2<f32>(dot_unit(w0, u), dot_unit(o0, u));
    w0 = n0;
    o0 = m0;
  }
  if (DEPTH == 4u) { sum += vec2<f32>(dot_at(w1, u + STEP), dot_at(o1, u + STEP)); }
  return sum + vec2<f32>(dot_at(w0, u), dot_at(o0, u));
}

// The whole row's, valid in the first ROWS invocations. Contains a barrier: every invocation of the workgroup calls it
// once.
fn join_slices(local: u32, own: vec2<f32>) -> vec2<f32> {
  partial[local] = own.x;
  if (SUMS == 2u) { partial[(SUMS - 1u) * THREADS + local] = own.y; }
  workgroupBarrier();  // all slices are summed by the first
  var sum = own;
  if (local < ROWS) {
    for (var i = 1u; i < SLICES; i++) {
      sum.x += partial[i * ROWS + local];
      if (SUMS == 2u) { sum.y += partial[(SUMS - 1u) * THREADS + i * ROWS + local]; }
    }
  }
  return sum;
}
