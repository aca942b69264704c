// The end of a step that chose a token. One invocation in all: a handful of dependent words. Contract: step.h.
//!import step/step_choice
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read> token: array<u32>;
@group(0) @binding(2) var<storage, read_write> ring: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;
@group(0) @binding(4) var<storage, read_write> recent: array<u32>;

@compute @workgroup_size(1)
fn main() { end_step(load_now(), token[0]); }
