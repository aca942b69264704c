// The sums of a stage for weights of one format; imported once for each format of a model. take_first() loads the first
// four units before the workgroup waits for its input, multiply() goes on from there. The four have names: an array of
// them would lie in memory.
// Fragments beside this one: persistent_stage, persistent_x. Variable of the entry: params.
//!import linear/weights/format

struct Four {
  a: Words,
  b: Words,
  c: Words,
  d: Words,
}

// Units come in fours. Unit `k` of the four with number `c` belongs to sum sum_index(), and is its unit number
// unit_index(). They are written so that little is left to compute for constant k and units_each.
fn sum_index(stage: Stage, c: u32, k: u32) -> u32 {
  if (stage.units_each % 4u == 0u) { return c / (stage.units_each / 4u); }
  if (4u % stage.units_each == 0u) { return c * (4u / stage.units_each) + k / stage.units_each; }
  return (4u * c + k) / stage.units_each;
}
fn unit_index(stage: Stage, c: u32, k: u32) -> u32 {
  if (stage.units_each % 4u == 0u) { return c % (stage.units_each / 4u) * 4u + k; }
  if (4u % stage.units_each == 0u) { return k % stage.units_each; }
  return (4u * c + k) % stage.units_each;
}
fn is_even(stage: Stage) -> bool { return stage.units % (THREADS / stage.rows) == 0u; }
// True if all fours are whole.
fn is_whole(stage: Stage) -> bool { return stage.units_each * stage.sums % 4u == 0u; }

fn column_of(stage: Stage, local: u32, c: u32, k: u32) -> u32 {
  return local / stage.rows + unit_index(stage, c, k) * (THREADS / stage.rows);
}

// `first`: the workgroup's first item in the matrix.
fn load_unit(stage: Stage, matrix: vec2<u32>, local: u32, first: u32, c: u32, k: u32) -> Words {
  let index = sum_index(stage, c, k);
  let item = first + index / stage.sums * GROUPS + index % stage.sums * stage.items;
  var unit = column_of(stage, local, c, k);
  if (!is_even(stage)) { unit = min(unit, stage.units - 1u); }
  params.units = stage.units;
  return load_words_from(matrix, item * stage.rows + local % stage.rows, unit);
}

fn load_four(stage: Stage, matrix: vec2<u32>, local: u32, first: u32, c: u32, count: u32) -> Four {
  if (is_whole(stage)) {
    return Four(load_unit(stage, matrix, local, first, c, 0u), load_unit(stage, matrix, local, first, c, 1u),
                load_unit(stage, matrix, local, first, c, 2u), load_unit(stage, matrix, local, first, c, 3u));
  }
  var four: Four;
  four.a = load_unit(stage, matrix, local, first, c, 0u);
  if (4u * c + 1u < count) { four.b = load_unit(stage, matrix, local, first, c, 1u); }
  if (4u * c + 2u < count) { four.c = load_unit(stage, matrix, local, first, c, 2u); }
  if (4u * c + 3u < count) { four.d = load_unit(stage, matrix, local, first, c, 3u); }
  return four;
}

fn take_first(stage: Stage, matrix: vec2<u32>, local: u32, first: u32, count: u32) -> Four {
  var four: Four;
  if (count > 0u) { four = load_four(stage, matrix, local, first, 0u, count); }
  return four;
}

fn unit_sum(stage: Stage, local: u32, c: u32, k: u32, loaded: Words) -> f32 {
  let unit = column_of(stage, local, c, k);
  var near = unit;
  if (!is_even(stage)) { near = min(unit, stage.units - 1u); }
  let sum = words_dot_q8(loaded, x_codes[2u * near], x_codes[2u * near + 1u], x_factors[2u * near],
                         x_factors[2u * near + 1u]);
  if (is_even(stage)) { return sum; }
  return select(0.0, sum, unit < stage.units);
}

// The rest of a sum after unit k: zero after its last unit, which most of four cannot be.
fn pass_sum(stage: Stage, local: u32, c: u32, k: u32, index: u32, sum: f32) -> f32 {
  if (stage.units_each % 4u == 0u && k < 3u) { return sum; }
  if (unit_index(stage, c, k) + 1u < stage.units_each) { return sum; }
  put_partial(stage, local, index + sum_index(stage, c, k), sum);
  return 0.0;
}

// Leaves the sums of `count` units in `partial`, from `index` on; the caller's barrier completes them.
fn multiply(stage: Stage, matrix: vec2<u32>, local: u32, first: u32, count: u32, index: u32, begun: Four) {
  var a = begun.a;
  var b = begun.b;
  var c = begun.c;
  var d = begun.d;
  var sum = 0.0;
  for (var n = 0u; 4u * n < count; n += one()) {
    var next: Four;
    if (4u * n + 4u < count) { next = load_four(stage, matrix, local, first, n + 1u, count); }
    sum = pass_sum(stage, local, n, 0u, index, sum + unit_sum(stage, local, n, 0u, a));
    if (is_whole(stage) || 4u * n + 1u < count) {
      sum = pass_sum(stage, local, n, 1u, index, sum + unit_sum(stage, local, n, 1u, b));
    }
    if (is_whole(stage) || 4u * n + 2u < count) {
      sum = pass_sum(stage, local, n, 2u, index, sum + unit_sum(stage, local, n, 2u, c));
    }
    if (is_whole(stage) || 4u * n + 3u < count) {
      sum = pass_sum(stage, local, n, 3u, index, sum + unit_sum(stage, local, n, 3u, d));
    }
    a = next.a;
    b = next.b;
    c = next.c;
    d = next.d;
  }
}
