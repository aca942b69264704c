// The slots of a step's rows by expert: moe/group_routes.h has the layout.
// Map: one workgroup; an invocation counts and places every WORKGROUP-th slot, and lays out every WORKGROUP-th expert.
// Shared: the number of slots of each expert, later the number of slots that are placed; the first place of each.
// Barriers: after each step.
// Consts: WORKGROUP, N_EXPERTS, N_USED, FIXED_ROWS (0: as many as the step has), TILES.
//!import common/step_state

@group(0) @binding(0) var<storage, read> routes: array<u32>;
@group(0) @binding(1) var<storage, read> state: StepState;
@group(0) @binding(2) var<storage, read_write> groups: array<u32>;

const kRows = 64u;   // kGroupRows
const kAlign = 16u;  // kGroupAlign
const kNoSlot = 0xFFFFFFFFu;
const kPlaces = 4u + 4u * TILES;  // where they begin

var<workgroup> counts: array<atomic<u32>, N_EXPERTS>;
var<workgroup> first_places: array<u32, N_EXPERTS>;
var<workgroup> tiles: u32;

fn expert_of_slot(slot: u32) -> u32 { return routes[slot / N_USED * 2u * N_USED + slot % N_USED]; }

// The tiles and places of the experts before this one.
fn before(expert: u32) -> vec2<u32> {
  var sum = vec2<u32>();
  for (var e = 0u; e < expert; e++) {
    let count = atomicLoad(&counts[e]);
    sum += vec2<u32>((count + kRows - 1u) / kRows, (count + kAlign - 1u) / kAlign * kAlign);
  }
  return sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) t: u32) {
  let slots = select(state.rows, FIXED_ROWS, FIXED_ROWS != 0u) * N_USED;
  for (var e = t; e < N_EXPERTS; e += WORKGROUP) { atomicStore(&counts[e], 0u); }
  workgroupBarrier();  // counts are zero
  for (var slot = t; slot < slots; slot += WORKGROUP) { atomicAdd(&counts[expert_of_slot(slot)], 1u); }
  workgroupBarrier();  // counts are complete
  for (var e = t; e < N_EXPERTS; e += WORKGROUP) {
    let first = before(e);
    let count = atomicLoad(&counts[e]);
    first_places[e] = first.y;
    let own_tiles = (count + kRows - 1u) / kRows;
    for (var i = 0u; i < own_tiles; i++) {
      let at = 4u * (1u + first.x + i);
      groups[at] = e;
      groups[at + 1u] = first.y + kRows * i;
      groups[at + 2u] = min(kRows, count - kRows * i);
    }
    let end = first.y + (count + kAlign - 1u) / kAlign * kAlign;
    for (var place = first.y + count; place < end; place++) { groups[kPlaces + place] = kNoSlot; }
    if (e == N_EXPERTS - 1u) {
      tiles = first.x + own_tiles;
      groups[0] = tiles;
      groups[1] = end;
    }
  }
  workgroupBarrier();  // all invocations have read the counts
  for (var tile = tiles + t; tile < TILES; tile += WORKGROUP) { groups[4u * (1u + tile) + 2u] = 0u; }
  for (var e = t; e < N_EXPERTS; e += WORKGROUP) { atomicStore(&counts[e], 0u); }
  workgroupBarrier();  // the counts are zero
  for (var slot = t; slot < slots; slot += WORKGROUP) {
    let expert = expert_of_slot(slot);
    groups[kPlaces + first_places[expert] + atomicAdd(&counts[expert], 1u)] = slot;
  }
}
