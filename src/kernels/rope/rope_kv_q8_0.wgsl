// Rotates q and k, and puts q into q_out and k and v as q8_0 into the cache. One workgroup: one head of one row (y of the
// grid), normalised first where HAS_NORMS. Of a head of k or v an invocation rotates every WORKGROUP-th value, then makes
// whole words of four bytes, for which it finds the largest of their block of 32 itself, and words of two scales.
// Barriers: in row_sum; head_values is complete.
// Error: q_out, absolute 4e-7 of the pair's length; a cached value, half a scale, of which the f16 is rounded to nearest
// even. Twins: rope_kv_portable, rope_kv_norm_portable. Layout: rope.h, CacheView.
//!import common/one_sequence
//!import common/mul_wide
//!import common/sincos
//!import common/f16_round
//!import common/q8_block
//!import common/row_sum_portable
//!import rope/rope_kv_rotate
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<vec2u>; // (low, high) of each pair's step
@group(0) @binding(3) var<storage, read_write> q_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> k_cache: array<u32>; // four bytes, or two scales
@group(0) @binding(5) var<storage, read_write> v_cache: array<u32>;
@group(0) @binding(6) var<storage, read> norms: array<f32>; // of q, of k

const kWords = HEAD_DIM / 4u;                            // of a row's bytes
const kScaleWords = (HEAD_DIM / 32u + 3u) / 4u * 2u;     // the last may be no blocks'
const kBlocks = HEAD_DIM / 32u;

var<workgroup> head_values: array<f32, HEAD_DIM>;
var<private> head_scale: f32;

fn value_of(head: u32, base: u32, d: u32) -> f32 {
  let value = qkv[base + d];
  if (!HAS_NORMS || head >= N_HEADS + N_KV_HEADS) {
    return value;
  }
  return value * head_scale * norms[d + select(HEAD_DIM, 0u, head < N_HEADS)];
}

fn largest_of(block: u32) -> f32 {
  var largest = 0.0;
  for (var i = 0u; i < 32u; i++) {
    largest = max(largest, abs(head_values[block * 32u + i]));
  }
  return largest;
}

fn scale_bits(block: u32) -> u32 {
  if (block >= kBlocks) {
    return 0u;
  }
  return f16_bits(largest_of(block) / 127.0);
}

fn word_of(i: u32) -> u32 {
  if (i >= kWords) {
    let block = 2u * (i - kWords);
    return scale_bits(block) | (scale_bits(block + 1u) << 16u);
  }
  let values = vec4f(head_values[4u * i], head_values[4u * i + 1u], head_values[4u * i + 2u], head_values[4u * i + 3u]);
  return q8_word(q8_quantise(values, largest_of(i / 8u)));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let head = group.x;
  let row = group.y;
  let base = row * QKV_STRIDE + QKV_COLUMN + head * HEAD_DIM;
  if (HAS_NORMS) {
    var squares = 0.0;
    for (var d = t; d < HEAD_DIM; d += WORKGROUP) {
      squares += qkv[base + d] * qkv[base + d];
    }
    head_scale = inverseSqrt(row_sum(t, 0u, 1u, squares) / f32(HEAD_DIM) + NORM_EPS);
  }
  let position = row_position(row);
  if (head < N_HEADS) {
    for (var d = t; d < HEAD_DIM; d += WORKGROUP) {
      q_out[(row * N_HEADS + head) * HEAD_DIM + d] = rotate(row, head, base, d, position);
    }
    return;
  }
  let is_value = head >= N_HEADS + N_KV_HEADS;
  for (var d = t; d < HEAD_DIM; d += WORKGROUP) {
    if (is_value) {
      head_values[d] = value_of(head, base, d);
    } else {
      head_values[d] = rotate(row, head, base, d, position);
    }
  }
  workgroupBarrier();
  if (position >= CTX_LEN) {
    return;
  }
  let kv_head = head - N_HEADS - select(0u, N_KV_HEADS, is_value);
  let at = cache_row(row, kv_head, position) * (kWords + kScaleWords);
  for (var i = t; i < kWords + kScaleWords; i += WORKGROUP) {
    if (is_value) {
      v_cache[at + i] = word_of(i);
    } else {
      k_cache[at + i] = word_of(i);
    }
  }
}
