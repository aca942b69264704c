// y = x W^T for a chunk of rows, any k, in f32.
// Map: a workgroup of 64 makes a tile of 64 rows of x by 64 weight rows; an invocation makes 8 x 8 sums: rows 4 tm +
// 0..3 and 32 + 4 tm + 0..3, columns likewise with tn. Shared: 32 columns of x and w, transposed, so that four
// neighbouring rows are one vec4 (an invocation brings four rows by eight columns of each), and the sums at the end.
// They take 16 KiB of workgroup memory, which every device has. Error: f32 sums of k products, relative L2 below 1e-5.
// Read next: linear/linear_x_any, linear/linear_x_eights, linear/weights/README.md.
//!import linear/matmul/matmul_bindings
//!import linear/weights/format
//!import linear/x
//!import linear/linear_epilogue

const TILE = 64u;
const QUADS = 16u;  // vec4 of a row or column of 64
const DEPTH = 32u;  // columns of x and w at a time
const W_TILE = DEPTH * QUADS;  // where the weights begin in `tile`

// [column][quad of rows] of x, then of w; at the end [row][quad of columns] of the sums.
var<workgroup> tile: array<vec4<f32>, 2u * DEPTH * QUADS>;

// Sums of four rows of x by four weight rows.
struct Block {
  row0: vec4<f32>,
  row1: vec4<f32>,
  row2: vec4<f32>,
  row3: vec4<f32>,
}

fn add_block(block: Block, a: vec4<f32>, b: vec4<f32>) -> Block {
  return Block(fma(vec4<f32>(a.x), b, block.row0), fma(vec4<f32>(a.y), b, block.row1),
               fma(vec4<f32>(a.z), b, block.row2), fma(vec4<f32>(a.w), b, block.row3));
}

fn put_block(block: Block, row: u32, quad: u32) {
  let at = row * QUADS + quad;
  tile[at] = block.row0;
  tile[at + QUADS] = block.row1;
  tile[at + 2u * QUADS] = block.row2;
  tile[at + 3u * QUADS] = block.row3;
}

// Eight columns of four rows a, b, c, d, as a vec4 of the rows for each column.
fn stage(a: mat2x4<f32>, b: mat2x4<f32>, c: mat2x4<f32>, d: mat2x4<f32>, at: u32) {
  let low = transpose(mat4x4<f32>(a[0], b[0], c[0], d[0]));
  let high = transpose(mat4x4<f32>(a[1], b[1], c[1], d[1]));
  tile[at] = low[0];
  tile[at + QUADS] = low[1];
  tile[at + 2u * QUADS] = low[2];
  tile[at + 3u * QUADS] = low[3];
  tile[at + 4u * QUADS] = high[0];
  tile[at + 5u * QUADS] = high[1];
  tile[at + 6u * QUADS] = high[2];
  tile[at + 7u * QUADS] = high[3];
}

fn four_from(first: u32, count: u32) -> vec4<u32> {
  return min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(count - 1u));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let rows = state.rows;
  let row0 = group.y * TILE;
  let column0 = group.x * TILE;
  let tn = local % 8u;
  let tm = local / 8u;
  // This invocation's rows: rows past the end repeat the last one, which is not written.
  let quad = local % QUADS;
  let eight = local / QUADS;
  let at = 8u * eight * QUADS + quad;
  let xr = four_from(row0 + 4u * quad, rows);
  let wr = four_from(column0 + 4u * quad, params.rows);
  let last_eight = (params.k + 7u) / 8u - 1u;
  // A CPU saves the time of rows that are not there.
  let has_near = !SKIP_EMPTY || row0 + 4u * tm < rows;
  let has_below = !SKIP_EMPTY || row0 + 32u + 4u * tm < rows;
  var near = Block();
  var right = Block();
  var below = Block();
  var far = Block();
  let steps = (params.k + DEPTH - 1u) / DEPTH;
  for (var step = 0u; step < steps; step++) {
    let i = 4u * step + eight;
    if (!SKIP_EMPTY || row0 + 4u * quad < rows) {
      stage(x8(xr.x, i), x8(xr.y, i), x8(xr.z, i), x8(xr.w, i), at);
    }
    let j = min(i, last_eight);  // past the end x is zero, and any finite weight will do
    stage(weight8(wr.x, j), weight8(wr.y, j), weight8(wr.z, j), weight8(wr.w, j), W_TILE + at);
    workgroupBarrier();  // both tiles are complete
    if (has_near) {
      for (var c = 0u; c < DEPTH; c++) {
        let a0 = tile[c * QUADS + tm];
        let b0 = tile[W_TILE + c * QUADS + tn];
        let b1 = tile[W_TILE + c * QUADS + 8u + tn];
        near = add_block(near, a0, b0);
        right = add_block(right, a0, b1);
        if (has_below) {
          let a1 = tile[c * QUADS + 8u + tm];
          below = add_block(below, a1, b0);
          far = add_block(far, a1, b1);
        }
      }
    }
    workgroupBarrier();  // all invocations have read the tiles
  }
  put_block(near, 4u * tm, tn);
  put_block(right, 4u * tm, 8u + tn);
  put_block(below, 32u + 4u * tm, tn);
  put_block(far, 32u + 4u * tm, 8u + tn);
  workgroupBarrier();  // the sums are complete
  // Written in the order of memory, four columns an invocation.
  for (var r = local / QUADS; r < min(TILE, rows - row0); r += 4u) {
    let sums = tile[r * QUADS + quad];
    let first = column0 + 4u * quad;
    let to = (row0 + r) * params.y_stride + params.y_first + first;
    for (var c = 0u; c < 4u; c++) {
      if (first + c < params.rows) { finish(first + c, sums[c], to + c); }
    }
  }
}
