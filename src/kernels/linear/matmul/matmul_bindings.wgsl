// The bindings of every matmul kernel. XElement is the kernel's own choice or comes with linear/x. Bindings that a
// recording does not use (scales, x_scales, bias) hold anything.
//!import common/step_state

struct Params {
  rows: u32,       // weight rows of this piece
  first_row: u32,  // of this piece in the matrix
  y_first: u32,    // column of y where output 0 of this piece goes
  y_stride: u32,
  k: u32,
  row_vec4s: u32,  // of plane 0
  units: u32,      // blocks of 32 columns, the padding included
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<XElement>;
@group(0) @binding(4) var<storage, read> x_scales: array<vec2<f32>>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read> state: StepState;
