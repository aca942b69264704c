// The bindings of matmul_few_pair: two weights with all their rows, the bias of both. Twin: skinny_bindings.
//!import common/step_state
//!import linear/skinny/skinny_place

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> second_weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> second_scales: array<u32>;
@group(0) @binding(4) var<storage, read> x: array<XElement>;
@group(0) @binding(5) var<storage, read> x_scales: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> bias: array<f32>;
@group(0) @binding(7) var<storage, read_write> y: array<f32>;
@group(0) @binding(8) var<storage, read> state: StepState;
