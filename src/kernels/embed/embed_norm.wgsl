// The input of a step of one row from a token that another dispatch chose. One workgroup in all.
// Read next: embed_norm_row.
//!import embed/embed_norm_row

@group(0) @binding(0) var<storage, read> token: array<u32>;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> norm_weight: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> y_q8: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) t: u32) {
  embed_norm(t, token[0], load_norm_weight(t));
}
