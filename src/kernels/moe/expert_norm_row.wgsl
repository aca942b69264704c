// The body of both expert_norm kernels, which declare the bindings and say how a row is summed (row_sum). One workgroup
// makes one row; an invocation keeps its kEach vec4s in registers, quad t + e * WORKGROUP of the row. Consts: N (a
// multiple of 4), N_USED, EPS, HAS_SHARED, HAS_GATE, HAS_F32, HAS_Q8, Q8_PLANE1.

const kQuads = N / 4u;
const kEach = (kQuads + WORKGROUP - 1u) / WORKGROUP;

fn normalise_sum(row: u32, t: u32, subgroup: u32, subgroup_size: u32) {
  var gate = 1.0;
  if (HAS_GATE) { gate = 1.0 / (1.0 + exp(min(-shared_gate[row], 87.0))); }
  var values: array<vec4f, kEach>;
  for (var e = 0u; e < kEach; e++) {
    let quad = t + e * WORKGROUP;
    if (quad >= kQuads) { continue; }
    var sum = vec4f();
    for (var slot = 0u; slot < N_USED; slot++) {
      let weight = bitcast<f32>(routes[(2u * row + 1u) * N_USED + slot]);
      sum += weight * x[(row * N_USED + slot) * kQuads + quad];
    }
    if (HAS_SHARED) { sum += gate * shared_x[row * kQuads + quad]; }
    values[e] = residual[row * kQuads + quad] + sum;
    residual[row * kQuads + quad] = values[e];
  }
  var squares = 0.0;
  for (var e = 0u; e < kEach; e++) { squares += dot(values[e], values[e]); }
  let scale = inverseSqrt(row_sum(t, subgroup, subgroup_size, squares) / f32(N) + EPS);
  for (var e = 0u; e < kEach; e++) {
    let quad = t + e * WORKGROUP;
    var value = vec4f();
    if (quad < kQuads) {
      value = values[e] * scale * weight[quad];
      if (HAS_F32) { y[row * kQuads + quad] = value; }
    }
    if (HAS_Q8) { store_q8(t, row * kQuads + quad, value, quad < kQuads); }
  }
}
