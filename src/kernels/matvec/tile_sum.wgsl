// The inner product of a row in a tile format, for kernels whose workgroup makes the 32 outputs of a tile: an
// invocation owns one row, so that neighbours read neighbouring words, and every SLICES-th unit of 32 columns. The next
// four units are loaded before the last four are used, because one alone would wait for a whole memory latency.
// Consts: UNITS (of a row), SLICES, SUMS (rows an invocation sums: 1 or 2). All shapes are constants, so that no
// address waits for a uniform. Read next: matvec/tile_x_q8, weights/README.md.
//!import weights/format
//!import matvec/tile_x

const TILE = 32u;

struct Params {
  units: u32,  // what the fragments of weights/ ask for
}
const params = Params(UNITS);

// One partial sum (with a gate: two) per invocation.
var<workgroup> partial: array<f32, SLICES * TILE * SUMS>;

// Past the end of a row the last unit is loaded again, and not counted.
fn load_at(row: u32, u: u32) -> Words { return load_words(row, min(u, UNITS - 1u)); }
fn dot_at(w: Words, u: u32) -> f32 {
  let share = dot_unit(w, min(u, UNITS - 1u));
  return select(0.0, share, u < UNITS);
}

// This invocation's share of a row. The loads stand before the first use of any, without a branch between them: x in a
// loop of its own and the norm's sums before the weights cost 11 % of a 1B step on an H200 (1,537 to 1,711 tok/s).
// load_before() and stage_before() of the entry bring what it needs besides. Contains a barrier: every invocation of the
// workgroup calls it once.
fn slice_sum(row: u32, local: u32) -> f32 {
  const STEP = SLICES;
  let share = load_share(local);
  let early = load_before(row, local);
  var u = local / TILE;
  var w0 = load_at(row, u);
  var w1 = load_at(row, u + STEP);
  var w2 = load_at(row, u + 2u * STEP);
  var w3 = load_at(row, u + 3u * STEP);
  stage_share(local, share);
  stage_before(local, early);
  workgroupBarrier();  // x is complete
  var sum = 0.0;
  for (; u + 4u * STEP < UNITS; u += 4u * STEP) {
    let next = u + 4u * STEP;
    let n0 = load_at(row, next);
    let n1 = load_at(row, next + STEP);
    let n2 = load_at(row, next + 2u * STEP);
    let n3 = load_at(row, next + 3u * STEP);
    sum += dot_unit(w0, u) + dot_unit(w1, u + STEP) + dot_unit(w2, u + 2u * STEP) + dot_unit(w3, u + 3u * STEP);
    w0 = n0;
    w1 = n1;
    w2 = n2;
    w3 = n3;
  }
  return sum + dot_at(w0, u) + dot_at(w1, u + STEP) + dot_at(w2, u + 2u * STEP) + dot_at(w3, u + 3u * STEP);
}

// The same of two rows at once, two units at a time.
fn slice_sums(row: u32, other: u32, local: u32) -> vec2<f32> {
  const STEP = SLICES;
  let share = load_share(local);
  let early = load_before(row, local);
  var u = local / TILE;
  var w0 = load_at(row, u);
  var w1 = load_at(row, u + STEP);
  var o0 = load_at(other, u);
  var o1 = load_at(other, u + STEP);
  stage_share(local, share);
  stage_before(local, early);
  workgroupBarrier();  // x is complete
  var sum = vec2<f32>(0.0);
  for (; u + 2u * STEP < UNITS; u += 2u * STEP) {
    let next = u + 2u * STEP;
    let n0 = load_at(row, next);
    let n1 = load_at(row, next + STEP);
    let m0 = load_at(other, next);
    let m1 = load_at(other, next + STEP);
    sum += vec2<f32>(dot_unit(w0, u) + dot_unit(w1, u + STEP), dot_unit(o0, u) + dot_unit(o1, u + STEP));
    w0 = n0;
    w1 = n1;
    o0 = m0;
    o1 = m1;
  }
  return sum + vec2<f32>(dot_at(w0, u) + dot_at(w1, u + STEP), dot_at(o0, u) + dot_at(o1, u + STEP));
}

// The whole row's, valid in the first 32 invocations. Contains a barrier: every invocation of the workgroup calls it
// once.
fn join_slices(local: u32, own: vec2<f32>) -> vec2<f32> {
  partial[local] = own.x;
  if (SUMS == 2u) { partial[(SUMS - 1u) * SLICES * TILE + local] = own.y; }
  workgroupBarrier();  // all slices are summed by the first
  var sum = own;
  if (local < TILE) {
    for (var i = 1u; i < SLICES; i++) {
      sum.x += partial[i * TILE + local];
      if (SUMS == 2u) { sum.y += partial[((SUMS - 1u) * SLICES + i) * TILE + local]; }
    }
  }
  return sum;
}
