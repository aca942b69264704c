// y = activate(gate) * up for one row of x and weights in a tile format, gates first, ups GATE_ROWS rows further on;
// y also or only as 8-bit blocks. x may be the input of an RMS norm whose division is still to be done (NORMED).
// Map: a workgroup makes ROWS outputs from as many gates and ups, see linear/matvec/tile_sum.
// Error: as matvec_tile.
// Read next: linear/matvec/tile_sum, linear/matvec/tile_block.
//!import linear/matvec/tile_sum
//!import linear/matvec/tile_norm
//!import linear/matvec/tile_block
//!import linear/matvec/invocation
//!import common/activate

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<XElement>;
@group(0) @binding(3) var<storage, read> x_scales: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> square_sums: array<f32>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read_write> y_q8: array<u32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, own: Invocation) {
  let local = local_of(own);
  let index = group.y * GROUPS_X + group.x;
  if (index * ROWS >= GATE_ROWS) { return; }  // the grid, folded over y, may have more
  let row = index * ROWS + local % ROWS;
  let up_row = row + GATE_ROWS;
  let shares = slice_sums(row, up_row, local, index);
  gather_norm(local);
  let sums = reduce_slices(local, shares);
  var value = 0.0;
  if (local < ROWS) {
    var both = sums * norm_factor();
    if (HAS_BIAS) { both += vec2<f32>(bias[row], bias[up_row]); }
    value = activate(both.x) * both.y;
    if (HAS_Y) { y[row] = value; }
  }
  if (HAS_Q8) { store_blocks(local, index, value); }
}
