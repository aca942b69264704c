// y = x W^T for a chunk of rows on the matrix units: f16 inputs, f32 sums (fragments of 16 x 16 x 16).
// Map: a workgroup of SUBGROUPS_M x SUBGROUPS_N subgroups makes BM rows of x by BN weight rows, each subgroup 64 by 64
// in 4 x 4 fragments. Grid: x over rows of x, so that workgroups that share weights run together, y over weight rows, z
// over splits of the columns. With GATED a workgroup's weight rows are 32 gates and their 32 ups, from which it makes
// activate(gate) * up: SUBGROUPS_N is 1, the halves are whole tiles.
// Shared: w_tile, BK columns of the workgroup's weight rows as f16, [weight row][column], which every invocation fills
// with whole units of 32 columns; the next step's units are in registers while this one's are multiplied. x is read
// straight from storage, where its fragments are contiguous.
// Barriers: before w_tile is filled (its readers are done) and after. At the end w_tile passes strips of four
// fragments, one a subgroup, to invocations that add a bias, activate, or check what they write at the edge of y.
// Error: x and weights rounded to f16, sums in f32, which the units round towards zero: linear.h.
// Read next: linear/weights/stage_tile_q4, common/forms.h (the order of x's numbers).
//!import linear/matmul/matmul_matrix_bindings
//!import common/fragments
//!import common/activate
//!import common/f16_store
//!import linear/linear_epilogue
//!import linear/weights/stage

const BM = 64u * SUBGROUPS_M;
const BN = 64u * SUBGROUPS_N;
const kSubgroups = SUBGROUPS_M * SUBGROUPS_N;
const kWorkgroup = 32u * kSubgroups;
const kStride = BK + 8u;  // of w_tile, in numbers: 16 bytes more, so that rows begin in different banks
const kStepUnits = BK / 32u;
const kEach = BN * kStepUnits / kWorkgroup;  // units an invocation brings in a step

// A strip in w_tile: 16 rows of 64 numbers, pairs of numbers an element; each row begins eight banks later.
const kStripStride = 36u;
const kStrip = 16u * kStripStride;

var<workgroup> w_tile: array<vec2<u32>, max(BN * kStride / 4u, kStrip * kSubgroups)>;

fn load_left(at: u32) -> Left {
  return subgroupMatrixLoad<Left, row_major>(&x, at, 16u);
}

fn load_right(at: u32) -> Right {
  return subgroupMatrixLoad<Right, col_major>(&w_tile, at / 4u, kStride / 4u);
}

fn load_sum(at: u32) -> Sum {
  return subgroupMatrixLoad<Sum, row_major>(&y, at, params.y_stride);
}

fn store_sum(at: u32, sum: Sum) {
  subgroupMatrixStore<row_major>(&y, at, sum, params.y_stride);
}

// Where a subgroup and its invocation are, for strips that are written number by number.
struct Place {
  strip: u32,  // in w_tile
  subgroup_invocation: u32,
  row: u32,     // the first of the subgroup's
  column: u32,  // likewise, in this piece
  y_at: u32,    // of column 0
  is_inside: bool,
}

// The r-th weight row of a workgroup.
fn weight_row(column0: u32, r: u32) -> u32 {
  if (GATED) { return column0 / 2u + r % 32u + select(0u, params.rows / 2u, r >= 32u); }
  return min(column0 + r, params.rows - 1u);
}

fn bias_quad(at: u32) -> vec4<f32> {
  if (!HAS_BIAS) { return vec4<f32>(); }
  return vec4<f32>(bias[at], bias[at + 1u], bias[at + 2u], bias[at + 3u]);
}

fn activated(x: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(activate(x.x), activate(x.y), activate(x.z), activate(x.w));
}

fn store_strip(place: Place, s0: Sum, s1: Sum, s2: Sum, s3: Sum) {
  workgroupBarrier();
//!repeat c = 0 to 3
  subgroupMatrixStore<row_major>(&w_tile, place.strip + $(8 * c)u, s$(c), kStripStride);
//!end
  workgroupBarrier();
}

// Two numbers of a row, from this even column on.
fn strip_pair(place: Place, row: u32, column: u32) -> vec2<f32> {
  return bitcast<vec2<f32>>(w_tile[place.strip + row * kStripStride + column / 2u]);
}

fn strip_quad(place: Place, row: u32, column: u32) -> vec4<f32> {
  return vec4<f32>(strip_pair(place, row, column), strip_pair(place, row, column + 2u));
}

fn store_quad(row: u32, column: u32, value: vec4<f32>) {
  if (HAS_F16) { store_f16_quad(row, column, value); }
  if (HAS_F32) {
    let at = row * params.y_stride + params.y_first + column;
    y[at] = value.x;
    y[at + 1u] = value.y;
    y[at + 2u] = value.z;
    y[at + 3u] = value.w;
  }
}

// A strip with its bias: an invocation takes two neighbours of each row. Inside y the residual is in the sums.
fn finish_rows(place: Place, down: u32) {
  let column = place.column + place.subgroup_invocation * 2u;
  var added = vec2<f32>();
  if (HAS_BIAS && place.is_inside) {
    added = vec2<f32>(bias[params.first_row + column], bias[params.first_row + column + 1u]);
  }
  for (var i = 0u; i < 16u; i++) {
    let row = place.row + down + i;
    let sums = strip_pair(place, i, place.subgroup_invocation * 2u);
    let at = row * params.y_stride + place.y_at + column;
    if (place.is_inside) {
      y[at] = sums.x + added.x;
      y[at + 1u] = sums.y + added.y;
    } else if (row < state.rows) {
      if (column < params.rows) { finish(column, sums.x, at); }
      if (column + 1u < params.rows) { finish(column + 1u, sums.y, at + 1u); }
    }
  }
}

// activate(sum): an invocation takes four neighbours of every other row.
fn finish_activated(place: Place, down: u32) {
  let right = place.subgroup_invocation % 16u * 4u;
  let column = place.column + right;
  if (column >= params.rows) { return; }
  let added = bias_quad(column);
  for (var i = place.subgroup_invocation / 16u; i < 16u; i += 2u) {
    let row = place.row + down + i;
    if (row < state.rows) { store_quad(row, column, activated(strip_quad(place, i, right) + added)); }
  }
}

// activate(gate) * up, which are the halves of a strip: an invocation takes four neighbours of every fourth row.
fn finish_gated(place: Place, down: u32) {
  let right = place.subgroup_invocation % 8u * 4u;
  let column = place.column + right;
  let added = bias_quad(column);
  let added_to_up = bias_quad(params.rows / 2u + column);
  for (var i = place.subgroup_invocation / 8u; i < 16u; i += 4u) {
    let row = place.row + down + i;
    if (row >= state.rows) { break; }
    let up = strip_quad(place, i, right + 32u) + added_to_up;
    store_quad(row, column, activated(strip_quad(place, i, right) + added) * up);
  }
}

@compute @workgroup_size(kWorkgroup)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) subgroup_invocation: u32) {
  let column0 = group.y * BN;
  let row0 = group.x * BM;
  let begin = group.z * params.split_units;
  let end = min(begin + params.split_units, params.units);
  let first_column = (subgroup % SUBGROUPS_N) * 64u;  // of this subgroup within the workgroup's
  let first_row = row0 + (subgroup / SUBGROUPS_N) * 64u;
  let y_first = group.z * params.y_split + params.y_first;
  let y0 = first_row * params.y_stride + y_first + column0 + first_column;
//!repeat r = 1 to 3
  let y$(r) = y0 + $(16 * r)u * params.y_stride;
//!end
  let is_inside = row0 + BM <= state.rows && column0 + BN <= params.rows;
  // Past the last tile of x the last one is multiplied again; its sums are not written.
  let last_tile = params.x_tiles - 1u;
  let x0 = min(first_row / 16u, last_tile) * params.k_tiles * 256u;
//!repeat r = 1 to 3
  let x$(r) = min(first_row / 16u + $(r)u, last_tile) * params.k_tiles * 256u;
//!end

//!repeat r = 0 to 3
//!repeat c = 0 to 3
  var s$(r)$(c): Sum;
//!end
//!end
  if (ACCUMULATE && is_inside) {
//!repeat r = 0 to 3
    s$(r)0 = load_sum(y$(r));
//!repeat c = 1 to 3
    s$(r)$(c) = load_sum(y$(r) + $(16 * c)u);
//!end
//!end
  }

  // Unit e of a step: weight row e % BN, and e / BN of the step's units.
  var units: array<StageUnit, kEach>;
  for (var e = 0u; e < kEach; e++) {
    let unit = local + e * kWorkgroup;
    units[e] = fetch_unit(weight_row(column0, unit % BN), begin + unit / BN);
  }
  for (var u = begin; u < end; u += kStepUnits) {
    workgroupBarrier();
    for (var e = 0u; e < kEach; e++) {
      let unit = local + e * kWorkgroup;
      stage_unit(units[e], unit % BN * kStride + unit / BN * 32u);
    }
    workgroupBarrier();
    let next = min(u + kStepUnits, end - kStepUnits);
    for (var e = 0u; e < kEach; e++) {
      let unit = local + e * kWorkgroup;
      units[e] = fetch_unit(weight_row(column0, unit % BN), next + unit / BN);
    }
    if (first_row < state.rows) {
      for (var k = 0u; k < BK / 16u; k++) {
        let w = first_column * kStride + k * 16u;
        let r0 = load_right(w);
//!repeat c = 1 to 3
        let r$(c) = load_right(w + $(16 * c)u * kStride);
//!end
        let at = (2u * u + k) * 256u;
//!repeat r = 0 to 3
        let l$(r) = load_left(x$(r) + at);
//!repeat c = 0 to 3
        s$(r)$(c) = subgroupMatrixMultiplyAccumulate(l$(r), r$(c), s$(r)$(c));
//!end
//!end
      }
    }
  }

  if (is_inside && !HAS_BIAS && ACTIVATE == 0u) {
//!repeat r = 0 to 3
    store_sum(y$(r), s$(r)0);
//!repeat c = 1 to 3
    store_sum(y$(r) + $(16 * c)u, s$(r)$(c));
//!end
//!end
    return;
  }
  let column = select(column0 + first_column, column0 / 2u, GATED);
  let place = Place(subgroup * kStrip, subgroup_invocation, first_row, column, y_first, is_inside);
//!repeat r = 0 to 3
  store_strip(place, s$(r)0, s$(r)1, s$(r)2, s$(r)3);
  if (GATED) {
    finish_gated(place, $(16 * r)u);
  } else if (ACTIVATE != 0u) {
    finish_activated(place, $(16 * r)u);
  } else {
    finish_rows(place, $(16 * r)u);
  }
//!end
}
