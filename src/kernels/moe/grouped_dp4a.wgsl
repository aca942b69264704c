// y = x W^T of a row's experts for a chunk of rows in 8-bit blocks: linear/matmul/matmul_dp4a with the rows of an
// expert.
// Map: a workgroup of 256 makes a tile of 64 places by 64 outputs; an invocation makes 4 x 4 sums: places tm + 16 i,
// outputs tn + 16 j. Shared: 32 columns of both as packed signed bytes with their scales, and the tile's slots.
// Needs k a multiple of 32. Error: f32 sums over the blocks, relative L2 below 1e-5 of the same sums in double.
// Read next: moe/group_place, linear/matmul/matmul_dp4a.
//!import moe/grouped_bindings
//!import moe/group_place
//!import linear/weights/format
//!import linear/weights/dot_bytes

alias XElement = vec4<u32>;

const TILE = 64u;

var<workgroup> slots: array<u32, TILE>;
// [half of the columns][row]: 16 packed bytes each.
var<workgroup> x_tile: array<vec4<u32>, 2u * TILE>;
var<workgroup> w_tile: array<vec4<u32>, 2u * TILE>;
var<workgroup> x_scale: array<vec2<f32>, 2u * TILE>;  // (d, d * sum)
var<workgroup> w_scale: array<vec2<f32>, 2u * TILE>;  // (scale, minimum)

fn dots(a: vec4<u32>, b0: vec4<u32>, b1: vec4<u32>, b2: vec4<u32>, b3: vec4<u32>) -> vec4<f32> {
  return vec4<f32>(vec4<i32>(idot16(a, b0), idot16(a, b1), idot16(a, b2), idot16(a, b3)));
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let tile = tile_of(group.y);
  if (tile.count == 0u || !is_in_piece(tile.expert)) { return; }
  let column0 = group.x * TILE;
  let tn = local % 16u;
  let tm = local / 16u;
  // This invocation's places and outputs: those past the end repeat the last one and are not written.
  let staged = local % TILE;
  let half = (local / TILE) % 2u;
  let slot = slot_at(tile.first + min(staged, tile.count - 1u));
  if (local < TILE) { slots[local] = slot; }
  let x_row = x_row_of(group_of(slot));
  let w_row = weight_row(min(column0 + staged, kOutputs - 1u), tile.expert) - PIECE_FIRST;
//!repeat i = 0 to 3
  var sum$(i) = vec4<f32>(0.0);
//!end
  for (var u = 0u; u < UNITS; u++) {
    if (local < 2u * TILE) {
      w_tile[local] = bytes16(w_row, 2u * u + half);
      w_scale[local] = scale_minimum(w_row, 2u * u + half);
    } else {
      x_tile[local - 2u * TILE] = x[x_row * UNITS * 2u + 2u * u + half];
      x_scale[local - 2u * TILE] = x_scales[x_row * UNITS * 2u + 2u * u + half];
    }
    workgroupBarrier();  // the columns are complete
    for (var h = 0u; h < 2u; h++) {
//!repeat name = s, b, w; from = x_scale, w_tile, w_scale; place = tm, tn, tn
      let $(name)0 = $(from)[h * TILE + $(place)];
//!repeat i = 1 to 3
      let $(name)$(i) = $(from)[h * TILE + $(place) + $(16 * i)u];
//!end
//!end
      let scale = vec4<f32>(w0.x, w1.x, w2.x, w3.x);
      sum0 += s0.x * scale * dots(x_tile[h * TILE + tm], b0, b1, b2, b3);
//!repeat i = 1 to 3
      sum$(i) += s$(i).x * scale * dots(x_tile[h * TILE + tm + $(16 * i)u], b0, b1, b2, b3);
//!end
      if (HAS_MINIMUM) {
        let minimum = vec4<f32>(w0.y, w1.y, w2.y, w3.y);
//!repeat i = 0 to 3
        sum$(i) -= s$(i).y * minimum;
//!end
      }
    }
    workgroupBarrier();  // all invocations have read the tiles
  }
  var sums = array<vec4<f32>, 4>(sum0, sum1, sum2, sum3);
  for (var i = 0u; i < 4u; i++) {
    let place = tm + 16u * i;
    if (place >= tile.count) { break; }
    for (var j = 0u; j < 4u; j++) {
      store_output(group_of(slots[place]), column0 + tn + 16u * j, tile.expert, sums[i][j]);
    }
  }
}
