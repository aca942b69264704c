// The inner product of a row in a tile format, for kernels whose workgroup makes the outputs of a tile of 32 rows or of
// half a tile (ROWS): an invocation owns one row, so that neighbours read neighbouring words, and every SLICES-th unit
// of 32 columns. The next DEPTH units (with two sums half as many of each) are loaded before the last ones are used,
// because a single unit would wait for a whole memory latency.
// Consts: UNITS (of a row), ROWS, SLICES, SUMS (rows an invocation sums: 1 or 2), DEPTH (4 or 2). All shapes are
// constants, so that no address waits for a uniform. Read next: linear/matvec/tile_x_q8, linear/weights/README.md.
//!import linear/weights/format
//!import linear/matvec/tile_x

const THREADS = ROWS * SLICES;

struct Params {
  units: u32,  // what the fragments of weights/ ask for
}
const params = Params(UNITS);

// One partial sum (with a gate: two) per invocation.
var<workgroup> partial: array<f32, THREADS * SUMS>;

// Units of an invocation. If the slices do not divide a row's units, the last unit of some invocations is loaded once
// more from the end of the row, and not counted. An index is compared only in this case.
const EACH = (UNITS + SLICES - 1u) / SLICES;
const kWhole = UNITS % SLICES == 0u;

fn load_at(row: u32, u: u32) -> Words {
  if (kWhole) { return load_words(row, u); }
  return load_words(row, min(u, UNITS - 1u));
}
fn dot_at(w: Words, u: u32) -> f32 {
  if (kWhole) { return dot_unit(w, u); }
  let share = dot_unit(w, min(u, UNITS - 1u));
  return select(0.0, share, u < UNITS);
}

// This invocation's share of a row. The loads stand before the first use of any, without a branch between them: x in a
// loop of its own and the norm's sums before the weights cost 11 % of a 1B step on an H200 (1,537 to 1,711 tok/s).
// load_before() and stage_before() of the entry bring what it needs besides. `group`: which workgroup this is. Contains
// barriers: every invocation of the workgroup calls it once.
fn slice_sum(row: u32, local: u32, group: u32) -> f32 {
  const STEP = SLICES;
  const ROUNDS = EACH / DEPTH;  // whole ones
  const REST = select(0u, EACH % DEPTH, ROUNDS > 0u);
  let share = load_share(local);
  let early = load_before(row, local);
  var u = local / ROWS;
  var w0 = load_at(row, u);
  var w1: Words;
  var w2: Words;
  var w3: Words;
  if (EACH > 1u) { w1 = load_at(row, u + STEP); }
  if (EACH > 2u && DEPTH > 2u) { w2 = load_at(row, u + 2u * STEP); }
  if (EACH > 3u && DEPTH > 2u) { w3 = load_at(row, u + 3u * STEP); }
  stage_share(local, group, share);
  stage_before(local, early);
  workgroupBarrier();  // x is complete
  var sum = 0.0;
  for (var i = 1u; i < ROUNDS; i++) {
    let next = u + DEPTH * STEP;
    let n0 = load_at(row, next);
    let n1 = load_at(row, next + STEP);
    if (DEPTH > 2u) {
      let n2 = load_at(row, next + 2u * STEP);
      let n3 = load_at(row, next + 3u * STEP);
      sum += dot_unit(w2, u + 2u * STEP) + dot_unit(w3, u + 3u * STEP);
      w2 = n2;
      w3 = n3;
    }
    sum += dot_unit(w0, u) + dot_unit(w1, u + STEP);
    w0 = n0;
    w1 = n1;
    u = next;
  }
  let last = u + DEPTH * STEP;
  var r0: Words;
  var r1: Words;
  var r2: Words;
  if (REST > 0u) { r0 = load_at(row, last); }
  if (REST > 1u) { r1 = load_at(row, last + STEP); }
  if (REST > 2u) { r2 = load_at(row, last + 2u * STEP); }
  sum += dot_at(w0, u);
  if (EACH > 1u) { sum += dot_at(w1, u + STEP); }
  if (EACH > 2u && DEPTH > 2u) { sum += dot_at(w2, u + 2u * STEP); }
  if (EACH > 3u && DEPTH > 2u) { sum += dot_at(w3, u + 3u * STEP); }
  if (REST > 0u) { sum += dot_at(r0, last); }
  if (REST > 1u) { sum += dot_at(r1, last + STEP); }
  if (REST > 2u) { sum += dot_at(r2, last + 2u * STEP); }
  return sum;
}

// The same of two rows at once, half as many units at a time.
fn slice_sums(row: u32, other: u32, local: u32, group: u32) -> vec2<f32> {
  const STEP = SLICES;
  const UNITS_AHEAD = DEPTH / 2u;
  const ROUNDS = EACH / UNITS_AHEAD;
  const REST = select(0u, EACH % UNITS_AHEAD, ROUNDS > 0u);  // 0 or 1
  let share = load_share(local);
  let early = load_before(row, local);
  var u = local / ROWS;
  var w0 = load_at(row, u);
  var o0 = load_at(other, u);
  var w1: Words;
  var o1: Words;
  if (EACH > 1u && UNITS_AHEAD > 1u) {
    w1 = load_at(row, u + STEP);
    o1 = load_at(other, u + STEP);
  }
  stage_share(local, group, share);
  stage_before(local, early);
  workgroupBarrier();  // x is complete
  var sum = vec2<f32>(0.0);
  for (var i = 1u; i < ROUNDS; i++) {
    let next = u + UNITS_AHEAD * STEP;
    let n0 = load_at(row, next);
    let m0 = load_at(other, next);
    if (UNITS_AHEAD > 1u) {
      let n1 = load_at(row, next + STEP);
      let m1 = load_at(other, next + STEP);
      sum += vec2<f32>(dot_unit(w1, u + STEP), dot_unit(o1, u + STEP));
      w1 = n1;
      o1 = m1;
    }
    sum += vec2<f32>(dot_unit(w0, u), dot_unit(o0, u));
    w0 = n0;
    o0 = m0;
    u = next;
  }
  let last = u + UNITS_AHEAD * STEP;
  var r: Words;
  var q: Words;
  if (REST > 0u) {
    r = load_at(row, last);
    q = load_at(other, last);
  }
  sum += vec2<f32>(dot_at(w0, u), dot_at(o0, u));
  if (EACH > 1u && UNITS_AHEAD > 1u) { sum += vec2<f32>(dot_at(w1, u + STEP), dot_at(o1, u + STEP)); }
  if (REST > 0u) { sum += vec2<f32>(dot_at(r, last), dot_at(q, last)); }
  return sum;
}

// The whole row's, valid in the first ROWS invocations. Contains a barrier: every invocation of the workgroup calls it
// once.
fn reduce_slices(local: u32, own: vec2<f32>) -> vec2<f32> {
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
