// y = x W^T of a row's experts for a chunk of rows on the matrix units: f16 inputs, f32 sums (fragments of 16 x 16 x
// 16).
// Map: a workgroup of SUBGROUPS subgroups makes a tile of 64 places (y of the grid) by BN outputs (x), each subgroup
// all places by 64 outputs, which it holds in 4 x 4 fragments. It multiplies all fragments, even if a tile has fewer
// places: a condition around the products costs more (H200: 8.7k instead of 12.5k tok/s of a prompt).
// Shared: w_tile, BK columns of the workgroup's weight rows as f16, [output][column], which every invocation fills with
// whole units of 32 columns; the next step's units are in registers while this one's are multiplied. x is read straight
// from storage, in the order of the places. `corner` passes fragments, one a subgroup, to invocations that know their
// slots.
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
//!repeat r = 1 to 3
  let x$(r) = x$(r - 1) + kTileColumns * 256u;
//!end

//!repeat r = 0 to 3
//!repeat c = 0 to 3
  var s$(r)$(c): Sum;
//!end
//!end

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

  let place = Place(tile, subgroup * 256u, subgroup_invocation, output0 + first_output);
//!repeat c = 0 to 3
  finish_sum(s0$(c), place, 0u, $(16 * c)u);
//!end
//!repeat r = 1 to 3
  if (tile.count > $(16 * r)u) {
//!repeat c = 0 to 3
    finish_sum(s$(r)$(c), place, $(16 * r)u, $(16 * c)u);
//!end
  }
//!end
}
