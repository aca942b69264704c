// y = gain * y + B low + constant of the rows' own adapters, eight rows a workgroup. If all eight have one adapter, B
// is read once for all. One invocation makes one column. Nothing is shared. Error: relative L2 below 1e-6.
// Consts: COLUMNS, Y_STRIDE, and the consts of the fragment with `low_of`.
//!import low_rank/rows_one
//!import low_rank/low_of_product
//!import low_rank/adapted
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> adapters: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> low: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> tokens: array<u32>;
@group(0) @binding(4) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const kTileRows = 8u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  let row = group.y * kTileRows;
  let rows = row_count();
  if (column >= COLUMNS || row >= rows) { return; }
  let adapter = adapter_of(row);
  var is_one = row + kTileRows <= rows;
  for (var i = 1u; i < kTileRows && is_one; i++) { is_one = adapter_of(row + i) == adapter; }
  if (!is_one) {
    for (var i = row; i < min(row + kTileRows, rows); i++) {
      let at = i * Y_STRIDE + column;
      y[at] = adapted(i, adapter_of(i), column, y[at]);
    }
    return;
  }
  if (adapter == 0u) { return; }
  let first = (adapter - 1u) * kQuadsOfB * COLUMNS + column;
//!repeat i = 0 to 7
  var sum$(i) = 0.0;
//!end
  for (var r = 0u; r < RANK4; r++) {
    let numbers = b[first + r * COLUMNS];
//!repeat i = 0 to 7
    sum$(i) += dot(numbers, low_of(row + $(i)u, adapter, column, r));
//!end
  }
  var gain = 1.0;
  var constant = 0.0;
  if (AFFINE) {
    let affine = b[first + RANK4 * COLUMNS];
    gain = affine.x;
    constant = affine.y;
  }
//!repeat i = 0 to 7
  y[(row + $(i)u) * Y_STRIDE + column] = y[(row + $(i)u) * Y_STRIDE + column] * gain + sum$(i) + constant;
//!end
}
