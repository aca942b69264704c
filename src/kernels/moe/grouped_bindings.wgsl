// The bindings of grouped products: as moe/expert_bindings, with the groups instead of the routes. Consts: K, UNITS,
// ROW_VEC4S.
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
@group(0) @binding(4) var<storage, read> groups: array<u32>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
