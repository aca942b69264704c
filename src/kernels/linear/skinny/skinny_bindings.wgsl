// The bindings of both kernels. XElement comes with linear/skinny/unit. Bindings that a recording does not use (scales,
// x_scales, bias, y, y_q8) hold anything. Twin: skinny_pair_bindings.
//!import common/step_state
//!import linear/skinny/skinny_place

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<XElement>;
@group(0) @binding(3) var<storage, read> x_scales: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> y_q8: array<u32>;
@group(0) @binding(7) var<storage, read> state: StepState;
