// The embedding of one token and its RMS norm, by one workgroup: x = SCALE * table[token], h = norm(x). An invocation
// keeps its kEach quads of columns in registers, quad t + e * WORKGROUP of the row.
// Bindings of the entry: weights, scales, norm_weight, x, y_q8 (h: blocks of 8 bits, then f32 from word H_F32 on).
// Consts: WORKGROUP (a power of two), K (a multiple of 4), UNITS and ROW_VEC4S (what the fragments of weights/ ask
// for), TABLE_ROWS, SCALE, EPS, HAS_Q8, Q8_PLANE1, H_F32. Shared: the partial sums of the norm
// (common/row_sum_portable), the blocks (common/q8_store). Error: embed's, then rms_norm's.
//!import linear/weights/format
//!import common/row_sum_portable
//!import common/q8_store

struct Params {
  units: u32,
  row_vec4s: u32,
}
const params = Params(UNITS, ROW_VEC4S);
const kQuads = K / 4u;
const kEach = (kQuads + WORKGROUP - 1u) / WORKGROUP;

// The norm's weight of this invocation's columns. The caller loads it before it knows the token.
fn load_norm_weight(t: u32) -> array<vec4<f32>, kEach> {
  var gains: array<vec4<f32>, kEach>;
  for (var e = 0u; e < kEach; e++) { gains[e] = norm_weight[min(t + e * WORKGROUP, kQuads - 1u)]; }
  return gains;
}

// Contains barriers: every invocation calls it. A token outside the table gives zeros.
fn embed_norm(t: u32, token: u32, gains: array<vec4<f32>, kEach>) {
  let inside = token < TABLE_ROWS;
  var values: array<vec4<f32>, kEach>;
  for (var e = 0u; e < kEach; e++) {
    let quad = min(t + e * WORKGROUP, kQuads - 1u);
    let eight = weight8(select(0u, token, inside), quad >> 1u);
    values[e] = select(vec4<f32>(), select(eight[0], eight[1], (quad & 1u) == 1u) * SCALE, inside);
  }
  var squares = 0.0;
  for (var e = 0u; e < kEach; e++) {
    let quad = t + e * WORKGROUP;
    if (quad < kQuads) {
      x[quad] = values[e];
      squares += dot(values[e], values[e]);
    }
  }
  let factor = inverseSqrt(row_sum(t, 0u, 0u, squares) / f32(K) + EPS);
  for (var e = 0u; e < kEach; e++) {
    let quad = t + e * WORKGROUP;
    var value = vec4<f32>();
    if (quad < kQuads) {
      value = values[e] * factor * gains[e];
      for (var c = 0u; c < 4u; c++) { y_q8[H_F32 + 4u * quad + c] = bitcast<u32>(value[c]); }
    }
    if (HAS_Q8) { store_q8(t, quad, value, quad < kQuads); }
  }
}
