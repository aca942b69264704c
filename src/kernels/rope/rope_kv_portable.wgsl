// Rotates q and k, and puts q into q_out and k and v into the cache. One invocation makes two neighbouring values
// (2j, 2j+1) of one head of one row (y of the grid): the pair that shares a word of an f16 cache. The rotation's own
// pairs are others unless INTERLEAVED, so each of the two values fetches its partner itself.
// The phase is position * step in turns, 64-bit fixed point, of which the top 32 bits are kept (1.5e-9 radian).
// Error: q_out and an f32 cache, absolute 4e-7 of the pair's length; an f16 cache, rounded to nearest even.
//!import common/step_state
//!import common/mul_wide
//!import common/sincos
//!import common/f16_round
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<vec2u>; // (low, high) of each pair's step
@group(0) @binding(3) var<storage, read_write> q_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> k_cache: array<u32>; // f16 pairs, or the bits of f32
@group(0) @binding(5) var<storage, read_write> v_cache: array<u32>;

const kHeads = N_HEADS + 2u * N_KV_HEADS;
const kPairs = PADDED_HEAD_DIM / 2u;
const kHalf = max(ROTARY_DIM / 2u, 1u); // not 0, for the remainder below

fn rotate(base: u32, d: u32, position: u32) -> f32 {
  if (d >= HEAD_DIM) {
    return 0.0;
  }
  let own = qkv[base + d];
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
  let other = qkv[base + partner];
  return own * turn.x + select(-other, other, is_second) * turn.y;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= kHeads * kPairs) {
    return;
  }
  let row = id.y;
  let head = id.x / kPairs;
  let d = id.x % kPairs * 2u;
  let position = state.pos + row;
  let base = (row * kHeads + head) * HEAD_DIM;

  var values = vec2f();
  if (head < N_HEADS + N_KV_HEADS) {
    values = vec2f(rotate(base, d, position), rotate(base, d + 1u, position));
  } else {
    if (d < HEAD_DIM) {
      values.x = qkv[base + d];
    }
    if (d + 1u < HEAD_DIM) {
      values.y = qkv[base + d + 1u];
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
  let pair_at = (kv_head * CTX_LEN + position) * kPairs + d / 2u;
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
