// Rows of blocks, as the file stores them, to a tile format of codes (base/dtype.h: tile_q4, tile_q5, tile_q6,
// tile_q8). Map: a workgroup makes UNITS_PER_GROUP units (x of the grid) of the 32 rows of a tile (y), an invocation
// one unit of one row; neighbouring invocations have neighbouring rows, so that what they write is together. Rows that
// fill up the last tile are written as zeros. Exact: integers, and products of scales rounded to nearest even. Read
// next: repack_q4_k.wgsl (read_unit), repack_to_q5.wgsl (store_unit).
//!import linear/repack/block
//!import linear/repack/target

struct Params {
  units: u32,       // of 32 columns, in a row
  rows: u32,        // in `raw`
  row_bytes: u32,   // of the file
  first_tile: u32,  // in plane 1; plane 0 is bound from its first tile on
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> raw: array<u32>;
@group(0) @binding(2) var<storage, read_write> plane0: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> plane1: array<u32>;

@compute @workgroup_size(32u * UNITS_PER_GROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let u = group.x * UNITS_PER_GROUP + (local >> 5u);
  if (u >= params.units) { return; }
  let r = local & 31u;
  let row = 32u * group.y + r;
  var unit = Unit();
  if (row < params.rows) { unit = read_unit(row * params.row_bytes, u); }
  store_unit(unit, group.y * params.units + u, (params.first_tile + group.y) * params.units + u, r);
}
