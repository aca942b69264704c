// The two tiles of matmul_narrow in workgroup memory, how they are filled and read, and how finished fragments are
// stored. Consts: ROWS, SUBGROUPS, TILES, AHEAD (matmul_narrow), HAS_TAIL (the last step is not whole), SPLIT,
// HAS_BIAS, ACCUMULATE. Read next: matmul_narrow, linear/weights/stage_tile_q4.
//!import linear/narrow/matmul_narrow_bindings
//!import common/fragments
//!import linear/linear_epilogue
//!import linear/weights/stage

const kWorkgroup = 32u * SUBGROUPS;
const kStride = 40u;  // of both tiles, in numbers: 32, and so many that eight rows begin in different banks
const kBuffer = 16u * kStride;
const kUnitStep = 4u;    // from unit to unit: what four invocations write at once are neighbours
const kPairsStep = 16u;  // from the first two pairs of a unit's eight columns to the others
const kRowsX = 16u * TILES;
const kEach = (4u * kRowsX + kWorkgroup - 1u) / kWorkgroup;  // vectors of x_tile that an invocation brings
const kUnits = ROWS / 8u;                                    // units that an invocation holds

var<workgroup> w_tile: array<vec2<u32>, SUBGROUPS * kBuffer / 2u>;
var<workgroup> x_tile: array<vec2<u32>, TILES * kBuffer / 4u>;

alias XShare = array<vec4<u32>, kEach>;

fn load_w(at: u32) -> Left { return subgroupMatrixLoad<Left, row_major>(&w_tile, at / 4u, kStride / 4u); }
fn load_x(at: u32) -> Right { return subgroupMatrixLoad<Right, col_major>(&x_tile, at / 4u, kStride / 4u); }

// The unit u + `unit` of weight row 8 * i of a subgroup, counted from the invocation's own. Tiles of 32 weight rows are
// whole (base/dtype.h); past the last one that one is read again.
fn fetch_w(first_row: u32, own_row: u32, i: u32, u: u32, unit: u32) -> StageUnit {
  let tile = min(first_row / 32u + i / 4u, (params.rows - 1u) / 32u);
  let column = select(u + unit, min(u + unit, params.units - 1u), HAS_TAIL);
  return fetch_at(UnitPlace(tile * params.units + column, 8u * (i % 4u) + own_row));
}

// Row of x and unit of a vector of x_tile.
fn row_of(item: u32) -> u32 { return min(item / 4u, kRowsX - 1u); }
fn unit_of(item: u32) -> u32 { return item % 4u; }

// An invocation's part of x, for eighth e of the step from unit u on. After the last unit x is zero.
fn fetch_x(local: u32, u: u32, e: u32, end: u32) -> XShare {
  var share: XShare;
  for (var i = 0u; i < kEach; i++) {
    let row = row_of(local + kWorkgroup * i);
    let unit = u + unit_of(local + kWorkgroup * i);
    let there = select(unit, min(unit, params.units - 1u), HAS_TAIL);
    let tile = min(row / 16u, params.x_tiles - 1u) * params.k_tiles + 2u * there + e / 2u;
    share[i] = x[tile * 32u + row % 16u * 2u + e % 2u];
    if (HAS_TAIL) { share[i] = select(vec4<u32>(), share[i], unit < end); }
  }
  return share;
}

fn put_words(at: u32, words: vec4<u32>) {
  x_tile[at / 4u] = words.xy;
  x_tile[(at + kPairsStep) / 4u] = words.zw;
}

fn stage_x(local: u32, share: XShare) {
  for (var i = 0u; i < kEach; i++) {
    let item = local + kWorkgroup * i;
    if (item < 4u * kRowsX) { put_words(row_of(item) * kStride + unit_of(item) * kUnitStep, share[i]); }
  }
}

// 16 weight rows: two units' eighths of each invocation.
fn stage_rows(upper: StageUnit, lower: StageUnit, e: u32, at: u32) {
  stage_eight(upper, e, at, kPairsStep);
  stage_eight(lower, e, at + 8u * kStride, kPairsStep);
}

// Where a subgroup's sums go.
struct Place {
  subgroup: u32,
  subgroup_invocation: u32,
  row: u32,   // the first of its weight rows
  y_at: u32,  // of weight row 0
}

// A fragment: weight rows `down`.. of the subgroup's, rows `right`.. of x. is_inside: all of the workgroup's are there.
fn put_sum(sum: Sum, place: Place, is_inside: bool, down: u32, right: u32) {
  if (SPLIT || (is_inside && !HAS_BIAS && !ACCUMULATE)) {
    subgroupMatrixStore<col_major>(&y, right * params.y_stride + place.y_at + place.row + down, sum, params.y_stride);
    return;
  }
  let corner = place.subgroup * kBuffer / 2u;  // the subgroup's part of w_tile, which is free by now
  subgroupMatrixStore<col_major>(&w_tile, corner, sum, 8u);
  workgroupBarrier();
  for (var e = place.subgroup_invocation; e < 256u; e += 32u) {
    let x_row = right + e / 16u;
    let row = place.row + down + e % 16u;
    if (x_row < state.rows && row < params.rows) {
      finish(row, bitcast<f32>(w_tile[corner + e / 2u][e % 2u]), x_row * params.y_stride + place.y_at + row);
    }
  }
  workgroupBarrier();
}
