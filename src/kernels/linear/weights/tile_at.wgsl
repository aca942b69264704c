// Shared by the tile formats (base/dtype.h): the place of a unit of a row, and the contract of linear/weights/README.md
// by way of load_words() and words_dot(), which let a kernel have many units' loads under way before it needs one.

// Entry p of `count` a unit.
fn plane_at(row: u32, u: u32, p: u32, count: u32) -> u32 {
  return (((row >> 5u) * params.units + u) * count + p) * 32u + (row & 31u);
}

// load_words_from(): of a weight whose planes begin at element first.x of `weights` and first.y of `scales`.
fn load_words(row: u32, u: u32) -> Words { return load_words_from(vec2<u32>(), row, u); }

fn unit_first16(u: u32) -> u32 { return 2u * u; }
fn unit_second16(u: u32) -> u32 { return 2u * u + 1u; }

fn unit_dot(row: u32, u: u32, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  return words_dot(load_words(row, u), xa, xb, sums);
}
