// y = x W^T of a row's experts for a chunk of rows on the matrix units: f16 inputs, f32 sums (fragments of 16 x 16 x 16).
// Map: a workgroup of SUBGROUPS subgroups makes a tile of 64 places (y of the grid) by BN outputs (x), each subgroup all
// places by 64 outputs, which it holds in 4 x 4 fragments. All of them are multiplied, also where a tile has fewer places:
// a condition around them costs more (H200: 8.7k instead of 12.5k tok/s of a prompt).
// Shared: w_tile, BK columns of the workgroup's weight rows as f16, [output][column], which every invocation fills with whole
// units of 32 columns; the next step's units are in registers while this one's are multiplied. x is read straight from
// storage, in the order of the places. `corner` passes fragments, one a subgroup, to invocations that know their slots.
// Barriers: before w_tile is filled (its readers are done) and after; around each use of corner.
// Error: x and weights rounded to f16, sums in f32, which the units round towards zero: linear.h.
// Consts: SUBGROUPS, BK. Read next: moe/group_place, linear/matmul/matmul_matrix.
//!import common/fragments
//!import moe/group_place
//!import linear/weights/stage

struct Params {
  units: u32,
}
const params = Params(UNITS);

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<f16>;
@group(0) @binding(3) var<storage, read> groups: array<u32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const BN = 64u * SUBGROUPS;
const kWorkgroup = 32u * SUBGROUPS;
const kStride = BK + 8u;  // of w_tile, in numbers: 16 bytes more, so that rows begin in different banks
const kStepUnits = BK / 32u;
const kEach = 2u * kStepUnits;  // units an invocation brings in a step
const kTileColumns = 2u * UNITS;  // fragments in a row of x

var<workgroup> w_tile: array<vec2<u32>, BN * kStride / 4u>;
var<workgroup> corner: array<f32, 256u * SUBGROUPS>;

fn load_left(at: u32) -> Left { return subgroupMatrixLoad<Left, row_major>(&x, at, 16u); }
fn load_right(at: u32) -> Right { return subgroupMatrixLoad<Right, col_major>(&w_tile, at / 4u, kStride / 4u); }

// Where a subgroup and its invocation are.
struct Place {
  tile: Tile,
  corner: u32,
  lane: u32,
  output: u32,  // the first of the subgroup's
}

fn finish_sum(sum: Sum, place: Place, down: u32, right: u32) {
  workgroupBarrier();
  subgroupMatrixStore<row_major>(&corner, place.corner, sum, 16u);
  workgroupBarrier();
  for (var e = place.lane; e < 256u; e += 32u) {
    let row = down + e / 16u;
    if (row < place.tile.count) {
      store_output(group_of(slot_at(place.tile.first + row)), place.output + right + e % 16u, place.tile.expert,
                   corner[place.corner + e]);
    }
  }
}

fn weight_of(expert: u32, output: u32) -> u32 { return weight_row(min(output, kOutputs - 1u), expert) - PIECE_FIRST; }

@compute @workgroup_size(kWorkgroup)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) subgroup_invocation: u32) {
  let tile = tile_of(group.y);
  if (tile.count == 0u || !is_in_piece(tile.expert)) { return; }
  let output0 = group.x * BN;
  let first_output = subgroup * 64u;  // of this subgroup within the workgroup's
  let x0 = tile.first / 16u * kTileColumns * 256u;
  let x1 = x0 + kTileColumns * 256u;
  let x2 = x1 + kTileColumns * 256u;
  let x3 = x2 + kTileColumns * 256u;

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

  // Unit e of a step: output e % BN, and e / BN of the step's units.
  var units: array<StageUnit, kEach>;
  for (var e = 0u; e < kEach; e++) {
    let unit = local + e * kWorkgroup;
    units[e] = fetch_unit(weight_of(tile.expert, output0 + unit % BN), unit / BN);
  }
  for (var u = 0u; u < UNITS; u += kStepUnits) {
    workgroupBarrier();
    for (var e = 0u; e < kEach; e++) {
      let unit = local + e * kWorkgroup;
      stage_unit(units[e], unit % BN * kStride + unit / BN * 32u);
    }
    workgroupBarrier();
    let next = min(u + kStepUnits, UNITS - kStepUnits);
    for (var e = 0u; e < kEach; e++) {
      let unit = local + e * kWorkgroup;
      units[e] = fetch_unit(weight_of(tile.expert, output0 + unit % BN), next + unit / BN);
    }
    for (var k = 0u; k < BK / 16u; k++) {
      let w = first_output * kStride + k * 16u;
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

  let place = Place(tile, subgroup * 256u, subgroup_invocation, output0 + first_output);
  finish_sum(s00, place, 0u, 0u);
  finish_sum(s01, place, 0u, 16u);
  finish_sum(s02, place, 0u, 32u);
  finish_sum(s03, place, 0u, 48u);
  if (tile.count > 16u) {
    finish_sum(s10, place, 16u, 0u);
    finish_sum(s11, place, 16u, 16u);
    finish_sum(s12, place, 16u, 32u);
    finish_sum(s13, place, 16u, 48u);
  }
  if (tile.count > 32u) {
    finish_sum(s20, place, 32u, 0u);
    finish_sum(s21, place, 32u, 16u);
    finish_sum(s22, place, 32u, 32u);
    finish_sum(s23, place, 32u, 48u);
  }
  if (tile.count > 48u) {
    finish_sum(s30, place, 48u, 0u);
    finish_sum(s31, place, 48u, 16u);
    finish_sum(s32, place, 48u, 32u);
    finish_sum(s33, place, 48u, 48u);
  }
}
