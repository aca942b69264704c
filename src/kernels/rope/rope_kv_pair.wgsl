// What the rope_kv kernels share: the rotation of one value, and the write of two neighbouring ones (2j, 2j+1) of a head:
// the pair that shares a word of an f16 cache. The rotation's own pairs are others unless INTERLEAVED, so each of the
// two values fetches its partner itself. The kernel declares the bindings and says what a value is before its rotation
// (value_of).
// The phase is position * step in turns, 64-bit fixed point, of which the top 32 bits are kept (1.5e-9 radian).
const kHeads = N_HEADS + 2u * N_KV_HEADS;
const kPairs = PADDED_HEAD_DIM / 2u;
const kHalf = max(ROTARY_DIM / 2u, 1u); // not 0, for the remainder below

fn rotate(head: u32, base: u32, d: u32, position: u32) -> f32 {
  if (d >= HEAD_DIM) {
    return 0.0;
  }
  let own = value_of(head, base, d);
  if (d >= ROTARY_DIM) {
    return own;
  }
  var pair = d / 2u;
  var is_second = (d & 1u) == 1u;
  var partner = d ^ 1u;
  if (!INTERLEAVED) {
    pair = d % kHalf;
    is_second = d >= kHalf;
    partner = select(d + kHalf, d - kHalf, is_second);
  }
  let step = table[pair];
  let turn = cos_sin(mul_wide(position, step.x).y + position * step.y) * ATTENTION_FACTOR;
  let other = value_of(head, base, partner);
  return own * turn.x + select(-other, other, is_second) * turn.y;
}

// Values d and d + 1 of a head of a row.
fn make_pair(row: u32, head: u32, d: u32) {
  let position = row_position(row);
  let base = (row * kHeads + head) * HEAD_DIM;

  var values = vec2f();
  if (head < N_HEADS + N_KV_HEADS) {
    values = vec2f(rotate(head, base, d, position), rotate(head, base, d + 1u, position));
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
