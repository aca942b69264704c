// Rows of a file to tiles of 16-bit numbers (base/dtype.h: tile_f16, tile_bf16).
// Map: as repack_codes; an invocation makes the four vec4 of one unit of one row.
// Exact: numbers are moved unchanged, or computed in f32 and rounded to nearest even.
// Read next: repack_q2_k.wgsl (read_eight).
//!import linear/repack/block

struct Params {
  units: u32,      // of 32 columns, in a row
  rows: u32,       // in `raw`
  row_bytes: u32,  // of the file
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> raw: array<u32>;
@group(0) @binding(2) var<storage, read_write> plane0: array<vec4<u32>>;

@compute @workgroup_size(32u * UNITS_PER_GROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let u = group.x * UNITS_PER_GROUP + (local >> 5u);
  if (u >= params.units) { return; }
  let r = local & 31u;
  let row = 32u * group.y + r;
  let to = (group.y * params.units + u) * 128u + r;
  for (var p = 0u; p < 4u; p++) {
    var eight = vec4<u32>();
    if (row < params.rows) { eight = read_eight(row * params.row_bytes, 4u * u + p); }
    plane0[to + 32u * p] = eight;
  }
}
