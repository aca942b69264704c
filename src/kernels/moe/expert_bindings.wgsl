// The bindings of kernels for weights in rows. XElement comes with the fragment that loads x (linear/matvec/unit_x,
// linear/x). Bindings that a recording does not use (scales, x_scales, bias) hold anything.
// Consts: K, UNITS (of 32 columns, the padding included), ROW_VEC4S (of plane 0).
struct Params {
  k: u32,
  row_vec4s: u32,
  units: u32,
}
const params = Params(K, ROW_VEC4S, UNITS);

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<XElement>;
@group(0) @binding(3) var<storage, read> x_scales: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read> routes: array<u32>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
