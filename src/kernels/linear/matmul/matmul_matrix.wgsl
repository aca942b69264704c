// y = x W^T for a chunk of rows on the matrix units: f16 inputs, f32 sums (fragments of 16 x 16 x 16).
// Map: a workgroup of SUBGROUPS_M x SUBGROUPS_N subgroups makes BM rows of x by BN weight rows, each subgroup 64 by 64
// of it, which it holds in 4 x 4 fragments. Grid: x over rows of x, so that who shares weights runs together, y over
// weight rows, z over splits of the columns. With GATED a workgroup's weight rows are 32 gates and their 32 ups, and
// it makes activate(gate) * up of them: SUBGROUPS_N is 1, the halves are whole tiles.
// Shared: w_tile, BK columns of the workgroup's weight rows as f16, [weight row][column], which every invocation fills
// with whole units of 32 columns; the next step's units are in registers while this one's are multiplied. x is read
// straight from storage, where its fragments are contiguous.
// Barriers: before w_tile is filled (its readers are done) and after. `corner` passes fragments at the edge of y, one
// a subgroup, to invocations that check what they write.
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

var<workgroup> w_tile: array<vec2<u32>, BN * kStride / 4u>;
var<workgroup> corner: array<f32, 256u * kSubgroups>;

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

// Where a subgroup and its invocation are, for fragments that are written number by number.
struct Place {
  subgroup: u32,
  subgroup_invocation: u32,
  row: u32,     // the first of the subgroup's
  column: u32,  // likewise, in this piece
  y_at: u32,    // of column 0
}

fn finish_sum(sum: Sum, place: Place, down: u32, right: u32) {
  subgroupMatrixStore<row_major>(&corner, place.subgroup * 256u, sum, 16u);
  workgroupBarrier();
  for (var e = place.subgroup_invocation; e < 256u; e += 32u) {
    let row = place.row + down + e / 16u;
    let column = place.column + right + e % 16u;
    if (row < state.rows && column < params.rows) {
      finish(column, corner[place.subgroup * 256u + e], row * params.y_stride + place.y_at + column);
    }
  }
  workgroupBarrier();
}

// The r-th weight row of a workgroup.
fn weight_row(column0: u32, r: u32) -> u32 {
  if (GATED) { return column0 / 2u + r % 32u + select(0u, params.rows / 2u, r >= 32u); }
  return min(column0 + r, params.rows - 1u);
}

fn corner_eight(place: Place) -> array<vec4<f32>, 2> {
  let at = place.subgroup * 256u + place.subgroup_invocation * 8u;
  return array<vec4<f32>, 2>(
      vec4<f32>(corner[at], corner[at + 1u], corner[at + 2u], corner[at + 3u]),
      vec4<f32>(corner[at + 4u], corner[at + 5u], corner[at + 6u], corner[at + 7u]));
}

fn gated(gate: vec4<f32>, up: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(activate(gate.x), activate(gate.y), activate(gate.z), activate(gate.w)) * up;
}

fn bias_quad(at: u32) -> vec4<f32> {
  if (!HAS_BIAS) { return vec4<f32>(); }
  return vec4<f32>(bias[at], bias[at + 1u], bias[at + 2u], bias[at + 3u]);
}

// An invocation takes eight numbers of half a row of a fragment.
fn finish_gated(gate: Sum, up: Sum, place: Place, down: u32, right: u32) {
  workgroupBarrier();
  subgroupMatrixStore<row_major>(&corner, place.subgroup * 256u, gate, 16u);
  workgroupBarrier();
  let gates = corner_eight(place);
  workgroupBarrier();
  subgroupMatrixStore<row_major>(&corner, place.subgroup * 256u, up, 16u);
  workgroupBarrier();
  let ups = corner_eight(place);
  let row = place.row + down + place.subgroup_invocation / 2u;
  for (var half = 0u; half < 2u; half++) {
    if (row >= state.rows) { break; }
    let column = place.column + right + place.subgroup_invocation % 2u * 8u + half * 4u;
    let value = gated(gates[half] + bias_quad(column), ups[half] + bias_quad(params.rows / 2u + column));
    if (HAS_F16) { store_f16_quad(row, column, value); }
    if (HAS_F32) {
      let at = row * params.y_stride + params.y_first + column;
      y[at] = value.x;
      y[at + 1u] = value.y;
      y[at + 2u] = value.z;
      y[at + 3u] = value.w;
    }
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
  let y1 = y0 + 16u * params.y_stride;
  let y2 = y0 + 32u * params.y_stride;
  let y3 = y0 + 48u * params.y_stride;
  let is_inside = row0 + BM <= state.rows && column0 + BN <= params.rows;
  // Past the last tile of x the last one is multiplied again; its sums are not written.
  let last_tile = params.x_tiles - 1u;
  let x0 = min(first_row / 16u, last_tile) * params.k_tiles * 256u;
  let x1 = min(first_row / 16u + 1u, last_tile) * params.k_tiles * 256u;
  let x2 = min(first_row / 16u + 2u, last_tile) * params.k_tiles * 256u;
  let x3 = min(first_row / 16u + 3u, last_tile) * params.k_tiles * 256u;

  var s00: Sum;
  var s01: Sum;
  var s02: Sum;
  var s03: Sum;
  var s10: Sum;
  var s11: Sum;
  var s12: Sum;
  var s13: Sum;
  var s20: Sum;
  var s21: Sum;
  var s22: Sum;
  var s23: Sum;
  var s30: Sum;
  var s31: Sum;
  var s32: Sum;
  var s33: Sum;
  if (ACCUMULATE && !HAS_BIAS && is_inside) {
    s00 = load_sum(y0);
    s01 = load_sum(y0 + 16u);
    s02 = load_sum(y0 + 32u);
    s03 = load_sum(y0 + 48u);
    s10 = load_sum(y1);
    s11 = load_sum(y1 + 16u);
    s12 = load_sum(y1 + 32u);
    s13 = load_sum(y1 + 48u);
    s20 = load_sum(y2);
    s21 = load_sum(y2 + 16u);
    s22 = load_sum(y2 + 32u);
    s23 = load_sum(y2 + 48u);
    s30 = load_sum(y3);
    s31 = load_sum(y3 + 16u);
    s32 = load_sum(y3 + 32u);
    s33 = load_sum(y3 + 48u);
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
        let r1 = load_right(w + 16u * kStride);
        let r2 = load_right(w + 32u * kStride);
        let r3 = load_right(w + 48u * kStride);
        let at = (2u * u + k) * 256u;
        let l0 = load_left(x0 + at);
        s00 = subgroupMatrixMultiplyAccumulate(l0, r0, s00);
        s01 = subgroupMatrixMultiplyAccumulate(l0, r1, s01);
        s02 = subgroupMatrixMultiplyAccumulate(l0, r2, s02);
        s03 = subgroupMatrixMultiplyAccumulate(l0, r3, s03);
        let l1 = load_left(x1 + at);
        s10 = subgroupMatrixMultiplyAccumulate(l1, r0, s10);
        s11 = subgroupMatrixMultiplyAccumulate(l1, r1, s11);
        s12 = subgroupMatrixMultiplyAccumulate(l1, r2, s12);
        s13 = subgroupMatrixMultiplyAccumulate(l1, r3, s13);
        let l2 = load_left(x2 + at);
        s20 = subgroupMatrixMultiplyAccumulate(l2, r0, s20);
        s21 = subgroupMatrixMultiplyAccumulate(l2, r1, s21);
        s22 = subgroupMatrixMultiplyAccumulate(l2, r2, s22);
        s23 = subgroupMatrixMultiplyAccumulate(l2, r3, s23);
        let l3 = load_left(x3 + at);
        s30 = subgroupMatrixMultiplyAccumulate(l3, r0, s30);
        s31 = subgroupMatrixMultiplyAccumulate(l3, r1, s31);
        s32 = subgroupMatrixMultiplyAccumulate(l3, r2, s32);
        s33 = subgroupMatrixMultiplyAccumulate(l3, r3, s33);
      }
    }
  }

  if (GATED) {
    let place = Place(subgroup, subgroup_invocation, first_row, column0 / 2u, 0u);
    finish_gated(s00, s02, place, 0u, 0u);
    finish_gated(s01, s03, place, 0u, 16u);
    finish_gated(s10, s12, place, 16u, 0u);
    finish_gated(s11, s13, place, 16u, 16u);
    finish_gated(s20, s22, place, 32u, 0u);
    finish_gated(s21, s23, place, 32u, 16u);
    finish_gated(s30, s32, place, 48u, 0u);
    finish_gated(s31, s33, place, 48u, 16u);
    return;
  }
  if (is_inside && !HAS_BIAS) {
    store_sum(y0, s00);
    store_sum(y0 + 16u, s01);
    store_sum(y0 + 32u, s02);
    store_sum(y0 + 48u, s03);
    store_sum(y1, s10);
    store_sum(y1 + 16u, s11);
    store_sum(y1 + 32u, s12);
    store_sum(y1 + 48u, s13);
    store_sum(y2, s20);
    store_sum(y2 + 16u, s21);
    store_sum(y2 + 32u, s22);
    store_sum(y2 + 48u, s23);
    store_sum(y3, s30);
    store_sum(y3 + 16u, s31);
    store_sum(y3 + 32u, s32);
    store_sum(y3 + 48u, s33);
    return;
  }
  let place = Place(subgroup, subgroup_invocation, first_row, column0 + first_column, y_first);
  finish_sum(s00, place, 0u, 0u);
  finish_sum(s01, place, 0u, 16u);
  finish_sum(s02, place, 0u, 32u);
  finish_sum(s03, place, 0u, 48u);
  finish_sum(s10, place, 16u, 0u);
  finish_sum(s11, place, 16u, 16u);
  finish_sum(s12, place, 16u, 32u);
  finish_sum(s13, place, 16u, 48u);
  finish_sum(s20, place, 32u, 0u);
  finish_sum(s21, place, 32u, 16u);
  finish_sum(s22, place, 32u, 32u);
  finish_sum(s23, place, 32u, 48u);
  finish_sum(s30, place, 48u, 0u);
  finish_sum(s31, place, 48u, 16u);
  finish_sum(s32, place, 48u, 32u);
  finish_sum(s33, place, 48u, 48u);
}
