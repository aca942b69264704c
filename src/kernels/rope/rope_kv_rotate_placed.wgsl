// Twin of rope_kv_rotate for rows that do not rotate by their own position: rope_place_shifted and its twins say which.
//!import rope/rope_place_shifted
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
  let place = place_of_pair(base / QKV_STRIDE, position, pair);
  let turn = cos_sin(mul_wide(place, step.x).y + place * step.y) * ATTENTION_FACTOR;
  let other = value_of(head, base, partner);
  return own * turn.x + select(-other, other, is_second) * turn.y;
}
