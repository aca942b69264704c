// Shared by the stage_* fragments: the place of a unit, numbers two at a time out of bytes 0 and 2 of a word, and
// stage_unit(), by way of each fragment's stage_eight().

// A unit: 32 columns of a weight row. Tiles have 32 rows and as many columns (base/dtype.h).
struct UnitPlace {
  tile: u32,  // tile of rows * params.units + unit of the row
  row: u32,   // of the tile
}

fn fetch_unit(row: u32, u: u32) -> StageUnit {
  return fetch_at(UnitPlace((row >> 5u) * params.units + u, row & 31u));
}

// Entry p of `count` a unit, in either plane.
fn unit_at(place: UnitPlace, p: u32, count: u32) -> u32 { return (place.tile * count + p) * 32u + place.row; }

// 1024 twice in f16, whose last ten bits count ones. The compiler must not know the number: NVIDIA's would take two
// instructions for a mask and it, since one has room for one constant. No weight has 2^31 units.
fn thousands() -> u32 { return 0x64006400u + (params.units >> 31u); }

// The low halves of bytes 0 and 2.
fn small_pair(word: u32) -> vec2<f16> {
  return bitcast<vec2<f16>>((word & 0x000f000fu) | thousands()) - vec2<f16>(1024.0h);
}

// Bytes 0 and 2.
fn byte_pair(word: u32) -> vec2<f16> {
  return bitcast<vec2<f16>>((word & 0x00ff00ffu) | thousands()) - vec2<f16>(1024.0h);
}

// Two pairs, one after the other: 8 bytes at a time meet in banks half as often as 4. H200, 8B, prompts of 512 and
// 4,096 tokens in one run: 16,520 to 17,020 and 16,475 to 16,815 tok/s. `at` counts numbers.
fn put_pairs(at: u32, a: vec2<f16>, b: vec2<f16>) { w_tile[at / 4u] = vec2<u32>(bitcast<u32>(a), bitcast<u32>(b)); }

// Eight columns from the bytes of two words.
fn put_bytes(at: u32, step: u32, early: u32, late: u32, offset: vec2<f16>, scale: vec2<f16>) {
  put_pairs(at, (byte_pair(early) - offset) * scale, (byte_pair(early >> 8u) - offset) * scale);
  put_pairs(at + step, (byte_pair(late) - offset) * scale, (byte_pair(late >> 8u) - offset) * scale);
}

// All 32 columns of a unit.
fn stage_unit(unit: StageUnit, at: u32) {
  for (var i = 0u; i < 4u; i++) { stage_eight(unit, i, at + 8u * i, 4u); }
}
