// y[row] = scale * table[tokens[row]] for a piece of the table in any weight format.
// Map: an invocation writes 8 columns of one row; the grid's y counts the rows of this step. Tokens of other pieces
// are left to their dispatches; a token outside the table gives zeros, written by the first piece.
// Read next: linear/weights/README.md (weight8).
//!import linear/weights/format

struct Params {
  k: u32,
  row_vec4s: u32,   // of plane 0
  units: u32,       // blocks of 32 columns, the padding included
  first_row: u32,   // of this piece in the table
  rows: u32,        // of this piece
  table_rows: u32,  // of the whole table
  scale: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> tokens: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = group.x * WORKGROUP + local;
  if (8u * i >= params.k) { return; }
  let token = tokens[group.y];
  let missing = token >= params.table_rows;
  let inside = token >= params.first_row && token - params.first_row < params.rows;
  if (!inside && !(missing && params.first_row == 0u)) { return; }
  var w = weight8(select(0u, token - params.first_row, inside), i) * params.scale;
  if (missing) { w = mat2x4<f32>(); }
  let at = group.y * params.k + 8u * i;
  let count = min(8u, params.k - 8u * i);
  for (var c = 0u; c < count; c++) {
    y[at + c] = select(w[0][c & 3u], w[1][c & 3u], c >= 4u);
  }
}
