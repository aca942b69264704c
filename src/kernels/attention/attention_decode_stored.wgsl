// The bindings of attention_decode_subgroup, and how it reads a cache in f16 or f32. Twin:
// attention_decode_stored_q8_0.
//!import attention/attention_no_gate
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> k_cache: array<Eight>;
@group(0) @binding(3) var<storage, read> v_cache: array<Eight>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) var<storage, read_write> result: array<f32>;
@group(0) @binding(6) var<storage, read_write> y_q8: array<u32>;

fn cached_key(at: u32) -> Eight { return k_cache[at]; }
fn cached_value(at: u32) -> Eight { return v_cache[at]; }
