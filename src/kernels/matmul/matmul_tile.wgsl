// y = x W^T for a chunk of rows, any k, in f32.
// Map: a workgroup of 64 makes a tile of 64 rows of x by 64 weight rows; an invocation makes 8 x 8 of it: rows
// 4 tm + 0..3 and 32 + 4 tm + 0..3, columns likewise with tn. Shared: 32 columns of both tiles, transposed, so that
// four neighbouring rows are one vec4; an invocation brings four rows by eight columns of each.
// 16 KiB of workgroup memory, what every device has. Error: f32 sums of k products, relative L2 below 1e-5.
// Read next: linear/linear_x_any, linear/linear_x_eights, weights/README.md.
//!import matmul/matmul_bindings
//!import weights/format
//!import linear/x
//!import linear/linear_epilogue

const TILE = 64u;
const QUADS = 16u;  // vec4 of four rows each in a tile
const DEPTH = 32u;  // columns at a time

var<workgroup> x_tile: array<vec4<f32>, DEPTH * QUADS>;
var<workgroup> w_tile: array<vec4<f32>, DEPTH * QUADS>;

// Sums of four rows of x by four columns.
struct Block {
  row0: vec4<f32>,
  row1: vec4<f32>,
  row2: vec4<f32>,
  row3: vec4<f32>,
}

// Column c of four rows as one vec4.
fn by_column(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> mat4x4<f32> {
  return transpose(mat4x4<f32>(a, b, c, d));
}

fn stage_x(quad: u32, eight: u32, first: u32, rows: u32, i: u32) {
  let r = vec4<u32>(first, first + 1u, first + 2u, first + 3u);
  let c = min(r, vec4<u32>(rows - 1u));  // rows past the end repeat the last one and are not written
  let a = x8(c.x, i);
  let b = x8(c.y, i);
  let d = x8(c.z, i);
  let e = x8(c.w, i);
  let low = by_column(a[0], b[0], d[0], e[0]);
  let high = by_column(a[1], b[1], d[1], e[1]);
  let at = 8u * eight * QUADS + quad;
  x_tile[at] = low[0];
  x_tile[at + QUADS] = low[1];
  x_tile[at + 2u * QUADS] = low[2];
  x_tile[at + 3u * QUADS] = low[3];
  x_tile[at + 4u * QUADS] = high[0];
  x_tile[at + 5u * QUADS] = high[1];
  x_tile[at + 6u * QUADS] = high[2];
  x_tile[at + 7u * QUADS] = high[3];
}

fn stage_w(quad: u32, eight: u32, first: u32, i: u32) {
  let c = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(params.rows - 1u));
  let inside = min(i, (params.k + 7u) / 8u - 1u);  // past the end x is zero and any weight will do
  let a = weight8(c.x, inside);
  let b = weight8(c.y, inside);
  let d = weight8(c.z, inside);
  let e = weight8(c.w, inside);
  let low = by_column(a[0], b[0], d[0], e[0]);
  let high = by_column(a[1], b[1], d[1], e[1]);
  let at = 8u * eight * QUADS + quad;
  w_tile[at] = low[0];
  w_tile[at + QUADS] = low[1];
  w_tile[at + 2u * QUADS] = low[2];
  w_tile[at + 3u * QUADS] = low[3];
  w_tile[at + 4u * QUADS] = high[0];
  w_tile[at + 5u * QUADS] = high[1];
  w_tile[at + 6u * QUADS] = high[2];
  w_tile[at + 7u * QUADS] = high[3];
}

fn add_block(block: Block, a: vec4<f32>, b: vec4<f32>) -> Block {
  return Block(fma(vec4<f32>(a.x), b, block.row0), fma(vec4<f32>(a.y), b, block.row1),
               fma(vec4<f32>(a.z), b, block.row2), fma(vec4<f32>(a.w), b, block.row3));
}

fn finish_row(sums: vec4<f32>, row: u32, rows: u32, column: u32) {
  if (row >= rows) { return; }
  let at = row * params.y_stride + params.y_first + column;
  if (column < params.rows) { finish(column, sums.x, at); }
  if (column + 1u < params.rows) { finish(column + 1u, sums.y, at + 1u); }
  if (column + 2u < params.rows) { finish(column + 2u, sums.z, at + 2u); }
  if (column + 3u < params.rows) { finish(column + 3u, sums.w, at + 3u); }
}

fn finish_block(block: Block, row: u32, rows: u32, column: u32) {
  finish_row(block.row0, row, rows, column);
  finish_row(block.row1, row + 1u, rows, column);
  finish_row(block.row2, row + 2u, rows, column);
  finish_row(block.row3, row + 3u, rows, column);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let rows = state.rows;
  let row0 = group.y * TILE;
  let column0 = group.x * TILE;
  let tn = local % 8u;
  let tm = local / 8u;
  let quad = local % QUADS;
  let eight = local / QUADS;
  var near = Block();
  var right = Block();
  var below = Block();
  var far = Block();
  let steps = (params.k + DEPTH - 1u) / DEPTH;
  for (var step = 0u; step < steps; step++) {
    stage_x(quad, eight, row0 + 4u * quad, rows, 4u * step + eight);
    stage_w(quad, eight, column0 + 4u * quad, 4u * step + eight);
    workgroupBarrier();  // both tiles are complete
    for (var c = 0u; c < DEPTH; c++) {
      let a0 = x_tile[c * QUADS + tm];
      let a1 = x_tile[c * QUADS + 8u + tm];
      let b0 = w_tile[c * QUADS + tn];
      let b1 = w_tile[c * QUADS + 8u + tn];
      near = add_block(near, a0, b0);
      right = add_block(right, a0, b1);
      below = add_block(below, a1, b0);
      far = add_block(far, a1, b1);
    }
    workgroupBarrier();  // nobody reads the tiles any more
  }
  let row = row0 + 4u * tm;
  let column = column0 + 4u * tn;
  finish_block(near, row, rows, column);
  finish_block(right, row, rows, column + 32u);
  finish_block(below, row + 32u, rows, column);
  finish_block(far, row + 32u, rows, column + 32u);
}
