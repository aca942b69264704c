// The body of the rope_kv kernels that normalise the heads of q and k first (RMSNorm with a weight), which declare the
// bindings and say how a head is summed (row_sum). One workgroup makes one head of one row.
var<private> head_scale: f32;

fn value_of(head: u32, base: u32, d: u32) -> f32 {
  let value = qkv[base + d] * head_scale;
  if (head < N_HEADS) {
    return value * norms[d];
  }
  if (head < N_HEADS + N_KV_HEADS) {
    return value * norms[HEAD_DIM + d];
  }
  return value;
}

fn make_head(row: u32, head: u32, t: u32, subgroup: u32, subgroup_size: u32) {
  let base = row * QKV_STRIDE + QKV_COLUMN + head * HEAD_DIM;
  var squares = 0.0;
  for (var d = t; d < HEAD_DIM; d += WORKGROUP) {
    squares += qkv[base + d] * qkv[base + d];
  }
  let scale = inverseSqrt(row_sum(t, subgroup, subgroup_size, squares) / f32(HEAD_DIM) + NORM_EPS);
  head_scale = select(1.0, scale, head < N_HEADS + N_KV_HEADS);
  for (var pair = t; pair < kPairs; pair += WORKGROUP) {
    make_pair(row, head, pair * 2u);
  }
}
