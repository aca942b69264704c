// RMSNorm of rows of whole vec4s, which are read once: an invocation keeps its kEach quads in registers, quad t + e *
// WORKGROUP of the row. One workgroup makes one row. Row sums by subgroup operations.
// Shared: the partial sums (common/row_sum_subgroup), the q8 blocks (common/q8_store). Error: relative L2 below 1e-6.
// Read next: rms_norm_row (the same for any row length).
//!import rms_norm/selected_row_last
//!import common/row_sum_subgroup
//!import common/q8_store
//!import common/f16_store
@group(0) @binding(0) var<storage, read> state: RmsNormState;
@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> add: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> y_q8: array<u32>;
@group(0) @binding(6) var<storage, read_write> y_f16: array<vec2<u32>>;
@group(0) @binding(7) var<storage, read> add_weight: array<vec4<f32>>;

const kQuads = N / 4u;
const kEach = (kQuads + WORKGROUP - 1u) / WORKGROUP;

// The added term: the sum of ADD_SPLITS splits of a product's columns.
fn added_quad(row: u32, quad: u32) -> vec4f {
  var sum = vec4f();
  for (var split = 0u; split < ADD_SPLITS; split++) { sum += add[(split * ADD_SPLIT + row * ADD_ROW) / 4u + quad]; }
  return sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(subgroup_id) subgroup: u32,
        @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_invocation_id) subgroup_invocation: u32) {
  let t = subgroup * subgroup_size + subgroup_invocation;
  var in_row = group.x;
  if (SELECTS) {
    if (group.x >= selected_rows()) { return; }
    in_row = selected_row(group.x);
  }
  let row_at = in_row * kQuads;

  var values: array<vec4f, kEach>;
  for (var e = 0u; e < kEach; e++) {
    let quad = t + e * WORKGROUP;
    if (quad < kQuads) { values[e] = x[row_at + quad]; }
  }
  if (HAS_ADD) {
    var added: array<vec4f, kEach>;
    var add_squares = 0.0;
    for (var e = 0u; e < kEach; e++) {
      let quad = t + e * WORKGROUP;
      if (quad < kQuads) { added[e] = added_quad(in_row, quad); }
      add_squares += dot(added[e], added[e]);
    }
    var add_scale = 1.0;
    if (HAS_ADD_NORM) {
      add_scale = inverseSqrt(row_sum(t, subgroup, subgroup_size, add_squares) / f32(N) + EPS);
      workgroupBarrier(); // the partial sums are used again
    }
    for (var e = 0u; e < kEach; e++) {
      let quad = t + e * WORKGROUP;
      if (quad < kQuads) {
        values[e] += select(added[e], added[e] * add_scale * add_weight[quad], HAS_ADD_NORM);
        if (HAS_SCALE) { values[e] *= sum_scale(); }
        x[row_at + quad] = values[e];
      }
    }
  }
  var scale = 1.0;
  if (HAS_NORM) {
    var squares = 0.0;
    for (var e = 0u; e < kEach; e++) { squares += dot(values[e], values[e]); }
    scale = inverseSqrt(row_sum(t, subgroup, subgroup_size, squares) / f32(N) + EPS);
  }
  for (var e = 0u; e < kEach; e++) {
    let quad = t + e * WORKGROUP;
    var value = vec4f();
    if (quad < kQuads) {
      value = values[e];
      if (HAS_NORM) { value *= scale * weight[quad]; }
      if (HAS_F32) { y[group.x * kQuads + quad] = value; }
      if (HAS_F16) { store_f16_quad(group.x, quad * 4u, value); }
    }
    if (HAS_Q8) { store_q8(t, group.x * kQuads + quad, value, quad < kQuads); }
  }
}
