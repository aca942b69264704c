// The bindings of every matvec kernel. XElement comes with the fragment that loads x (linear/matvec/unit_x, linear/x).
// Bindings that a recording does not use (scales, x_scales, bias) hold anything.
struct Params {
  rows: u32,          // outputs of this piece (with a gate: half its weight rows)
  first_row: u32,     // of this piece in the matrix
  y_first: u32,       // where output 0 of this piece goes
  gate_rows: u32,     // from a gate's row to its up row
  k: u32,
  row_vec4s: u32,     // of plane 0
  units: u32,         // blocks of 32 columns, the padding included
  groups_x: u32,      // workgroups along x, for grids folded over y
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<XElement>;
@group(0) @binding(4) var<storage, read> x_scales: array<vec2<f32>>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
