// What both kernels are given, and what the fragments of weights/ and the epilogue ask for. XElement comes with
// linear/skinny/unit. Bindings a recording does not use (scales, x_scales, bias, y, y_q8) hold anything.
// Consts: COLUMNS and ROW_VEC4S (of plane 0) of a row, FIRST_ROW (of this piece in the matrix).
//!import common/step_state

struct Params {
  units: u32,  // of 32 columns
  row_vec4s: u32,
  k: u32,
  first_row: u32,
}
const params = Params(COLUMNS / 32u, ROW_VEC4S, COLUMNS, FIRST_ROW);

// The first row of x of this workgroup; what else is called a row of x counts from it.
var<private> first_x_row: u32;
// The first number of y of this workgroup's split of the columns.
var<private> first_y: u32;

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<XElement>;
@group(0) @binding(3) var<storage, read> x_scales: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> y_q8: array<u32>;
@group(0) @binding(7) var<storage, read> state: StepState;
