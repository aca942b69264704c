// Where the rows of a grouped product come from and go to: moe/group_routes.h. Consts: TILES. Binding of the entry:
// groups.
//!import moe/expert_place

struct Tile {
  expert: u32,
  first: u32,  // place
  count: u32,
}

fn tile_of(number: u32) -> Tile {
  let at = 4u * (1u + number);
  return Tile(groups[at], groups[at + 1u], groups[at + 2u]);
}

fn slot_at(place: u32) -> u32 { return groups[4u + 4u * TILES + place]; }

// As the grid of a product whose rows are not grouped has it.
fn group_of(slot: u32) -> vec3<u32> { return vec3<u32>(0u, slot % N_USED, slot / N_USED); }
