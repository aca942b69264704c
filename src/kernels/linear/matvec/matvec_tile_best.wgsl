// Logits: y = x W^T for one row of x and weights in a tile format. It leaves the best output of each tile with its row,
// for the argmax (common/argmax_key), and y itself only if it is read. x may be the input of an RMS norm whose division
// is still to be done (NORMED).
// Map: a workgroup makes the ROWS outputs of a tile, see linear/matvec/tile_sum.
// Error: as matvec_tile.
// Read next: linear/matvec/tile_sum, linear/matvec/tile_norm.
//!import linear/matvec/tile_sum
//!import linear/matvec/tile_norm
//!import common/argmax_key

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<XElement>;
@group(0) @binding(3) var<storage, read> x_scales: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> square_sums: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> best: array<vec2<u32>>;

var<workgroup> keys: array<u32, ROWS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let tile = group.y * GROUPS_X + group.x;
  if (tile * ROWS >= N) { return; }  // the grid, folded over y, may have more
  let row = tile * ROWS + local % ROWS;
  let share = slice_sum(row, local, tile);
  gather_norm(local);
  let sum = reduce_slices(local, vec2<f32>(share, 0.0)).x;
  if (local < ROWS && row < N) {
    let value = sum * norm_factor();
    keys[local] = argmax_key(bitcast<u32>(value));
    if (HAS_Y) { y[FIRST_ROW + row] = value; }
  }
  workgroupBarrier();  // keys
  if (local == 0u) {
    var of_all = kNoneBest;
    for (var i = 0u; i < ROWS; i++) {
      let key = select(0u, keys[i], tile * ROWS + i < N);  // past the last row: loses, having a higher id
      of_all = better(of_all, vec2<u32>(key, FIRST_ROW + tile * ROWS + i));
    }
    best[FIRST_TILE + tile] = of_all;
  }
}
