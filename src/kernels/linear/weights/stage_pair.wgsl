// What the stage_* fragments share: where a unit lies, numbers two at a time out of bytes 0 and 2 of a word, and
// stage_unit(), by way of each fragment's stage_eight().
// 0x6400 is 1024 in f16, whose last ten bits count ones.

// Entry p of `count` a unit, in either plane of a tile format (base/dtype.h).
fn unit_at(row: u32, u: u32, p: u32, count: u32) -> u32 {
  return (((row >> 5u) * params.units + u) * count + p) * 32u + (row & 31u);
}

// The low halves of bytes 0 and 2.
fn small_pair(word: u32) -> vec2<f16> {
  return bitcast<vec2<f16>>((word & 0x000f000fu) | 0x64006400u) - vec2<f16>(1024.0h);
}

// Bytes 0 and 2.
fn byte_pair(word: u32) -> vec2<f16> {
  return bitcast<vec2<f16>>((word & 0x00ff00ffu) | 0x64006400u) - vec2<f16>(1024.0h);
}

fn put_pair(at: u32, pair: vec2<f16>) {
  w_tile[at] = pair.x;
  w_tile[at + 1u] = pair.y;
}

// Eight columns from the bytes of two words.
fn put_bytes(at: u32, step: u32, early: u32, late: u32, offset: vec2<f16>, scale: vec2<f16>) {
  put_pair(at, (byte_pair(early) - offset) * scale);
  put_pair(at + step, (byte_pair(early >> 8u) - offset) * scale);
  put_pair(at + 2u * step, (byte_pair(late) - offset) * scale);
  put_pair(at + 3u * step, (byte_pair(late >> 8u) - offset) * scale);
}

// All 32 columns of a unit.
fn stage_unit(unit: StageUnit, at: u32) {
  for (var i = 0u; i < 4u; i++) { stage_eight(unit, i, at + 8u * i, 2u); }
}
