// y = x W^T for a chunk of rows on the matrix units: f16 inputs, f32 sums (fragments of 16 x 16 x 16).
// Map: a workgroup of SUBGROUPS_M x SUBGROUPS_N subgroups makes BM rows of x by BN weight rows, each subgroup 64 by 64
// in 4 x 4 fragments. Grid: x over rows of x, so that workgroups that share weights run together, y over weight rows, z
// over splits of the columns. With GATED a workgroup's weight rows are 32 gates and their 32 ups, from which it makes
// activate(gate) * up: SUBGROUPS_N is 1, the halves are whole tiles.
// Shared: w_tile, BK columns of the workgroup's weight rows as f16, [weight row][column], which every invocation fills
// with whole units of 32 columns; the next step's units are in registers while this one's are multiplied. x is read
// straight from storage, where its fragments are contiguous.
// Barriers: before w_tile is filled (its readers are done) and after. `corner` passes fragments at the edge of y, one a
// subgroup, to invocations that check what they write.
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
  if (ACCUMULATE && !HAS_BIAS && is_inside) {
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

  if (GATED) {
    let place = Place(subgroup, subgroup_invocation, first_row, column0 / 2u, 0u);
//!repeat r = 0 to 3
    finish_gated(s$(r)0, s$(r)2, place, $(16 * r)u, 0u);
    finish_gated(s$(r)1, s$(r)3, place, $(16 * r)u, 16u);
//!end
    return;
  }
  if (is_inside && !HAS_BIAS) {
//!repeat r = 0 to 3
    store_sum(y$(r), s$(r)0);
//!repeat c = 1 to 3
    store_sum(y$(r) + $(16 * c)u, s$(r)$(c));
//!end
//!end
    return;
  }
  let place = Place(subgroup, subgroup_invocation, first_row, column0 + first_column, y_first);
//!repeat r = 0 to 3
//!repeat c = 0 to 3
  finish_sum(s$(r)$(c), place, $(16 * r)u, $(16 * c)u);
//!end
//!end
}
