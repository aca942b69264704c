// What the rope_kv kernels of f16 and f32 caches share: the write of two neighbouring values (2j, 2j+1) of a head, which
// share a word of an f16 cache. What a value is: rope_kv_rotate.
//!import rope/rope_kv_rotate

// Values d and d + 1 of a head of a row.
fn make_pair(row: u32, head: u32, d: u32) {
  let position = row_position(row);
  let base = row * QKV_STRIDE + QKV_COLUMN + head * HEAD_DIM;

  var values = vec2f();
  if (head < N_HEADS + N_KV_HEADS) {
    values = vec2f(rotate(row, head, base, d, position), rotate(row, head, base, d + 1u, position));
  } else {
    if (d < HEAD_DIM) {
      values.x = value_of(head, base, d);
    }
    if (d + 1u < HEAD_DIM) {
      values.y = value_of(head, base, d + 1u);
    }
  }

  if (head < N_HEADS) {
    let at = (row * N_HEADS + head) * HEAD_DIM + d;
    if (d < HEAD_DIM) {
      q_out[at] = values.x;
    }
    if (d + 1u < HEAD_DIM) {
      q_out[at + 1u] = values.y;
    }
    return;
  }
  if (position >= CTX_LEN) {
    return;
  }
  let is_value = head >= N_HEADS + N_KV_HEADS;
  let kv_head = head - N_HEADS - select(0u, N_KV_HEADS, is_value);
  let pair_at = cache_row(row, kv_head, position) * kPairs + d / 2u;
  if (CACHE_F16) {
    let word = pack_f16(values);
    if (is_value) {
      v_cache[pair_at] = word;
    } else {
      k_cache[pair_at] = word;
    }
  } else {
    let words = bitcast<vec2u>(values);
    if (is_value) {
      v_cache[pair_at * 2u] = words.x;
      v_cache[pair_at * 2u + 1u] = words.y;
    } else {
      k_cache[pair_at * 2u] = words.x;
      k_cache[pair_at * 2u + 1u] = words.y;
    }
  }
}
