// The bindings of matmul_narrow: x as f16 in tiles (common/forms.h), weights in a tile format (base/dtype.h). Bindings
// that a recording does not use (scales, bias) hold anything.
//!import common/step_state

struct Params {
  rows: u32,       // weight rows of this piece
  first_row: u32,  // of this piece in the matrix
  y_first: u32,    // column of y where output 0 of this piece goes
  y_stride: u32,
  y_split: u32,      // numbers between the partial sums of two splits
  k_tiles: u32,      // of 16 columns in a row of x
  units: u32,        // blocks of 32 columns of the weights
  split_units: u32,  // of one split, a multiple of four
  x_tiles: u32,      // of 16 rows that x has room for
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read> state: StepState;
