// Decode attention with subgroup operations that also does what rope/ does: rotates q and the newest key, and writes
// the newest key and value into the cache. See attention_decode_core. Twin of attention_decode_subgroup.
// The newest key and value are used from workgroup memory, rounded as the cache rounds them; the first workgroup of the
// kv head whose keys include them writes them. Barriers in prepare(): rotated, then newest.
// Heads may be normalised first. What a head is multiplied with for that goes past the rotation, which is linear, so that
// nothing waits for it: every worker sums the squares of its heads and of the key for itself.
//!import attention/attention_decode_core
//!import attention/attention_cache_f16_store
//!import rope/rope_pair
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<vec2u>; // (low, high) of each pair's step
@group(0) @binding(3) var<storage, read_write> k_cache: array<Eight>;
@group(0) @binding(4) var<storage, read_write> v_cache: array<Eight>;
@group(0) @binding(5) var<storage, read> sinks: array<f32>; // or, with norms, their weights: of q, of k
@group(0) @binding(6) var<storage, read_write> result: array<f32>;
@group(0) @binding(7) var<storage, read_write> y_q8: array<u32>;

const PADDED = 8u * D8;

var<workgroup> rotated: array<f32, (HEADS + 2u) * PADDED>; // query heads, the newest key, the newest value
var<workgroup> newest: array<Eight, 2u * D8>;              // key, value

var<private> head_scale: array<f32, HEADS + 1u>; // of the query heads, of the newest key

// 1 / the root of the mean square of each head that is normalised; the lanes of a worker share a head.
fn norm_heads(first_head: u32, heads: u32, kv_head: u32, lane: u32) {
  for (var h = 0u; h <= HEADS; h++) {
    let head = select(N_HEADS + kv_head, first_head + min(h, heads - 1u), h < HEADS);
    var squares = 0.0;
    for (var first = 0u; first < HEAD_DIM; first += LANES) {
      let value = qkv[head * HEAD_DIM + min(first + lane, HEAD_DIM - 1u)];
      squares += select(0.0, value * value, first + lane < HEAD_DIM);
    }
    for (var step = LANES / 2u; step > 0u; step >>= 1u) {
      squares += subgroupShuffleXor(squares, step);
    }
    head_scale[h] = inverseSqrt(squares / f32(HEAD_DIM) + NORM_EPS);
  }
}

fn prepare(first_head: u32, heads: u32, kv_head: u32, writes_newest: bool, thread: u32) {
  let position = state.pos;
  if (HAS_NORMS) { norm_heads(first_head, heads, kv_head, thread % LANES); }
  const PAIRS = PADDED / 2u;
  for (var i = thread; i < (HEADS + 2u) * PAIRS; i += WORKGROUP) {
    let h = i / PAIRS;
    let pair = i % PAIRS;
    var head = first_head + min(h, heads - 1u);
    if (h >= HEADS) { head = N_HEADS + (h - HEADS) * N_KV_HEADS + kv_head; }
    let places = pair_places(pair);
    var values = vec2f(select(0.0, qkv[head * HEAD_DIM + min(places.x, HEAD_DIM - 1u)], places.x < HEAD_DIM),
                       select(0.0, qkv[head * HEAD_DIM + min(places.y, HEAD_DIM - 1u)], places.y < HEAD_DIM));
    if (HAS_NORMS && h <= HEADS) {
      let weights = select(0u, HEAD_DIM, h == HEADS);
      values *= vec2f(sinks[weights + min(places.x, HEAD_DIM - 1u)], sinks[weights + min(places.y, HEAD_DIM - 1u)]);
    }
    if (h <= HEADS) { values = rotate_pair(values, pair, position); }
    if (h < HEADS) { values *= Q_SCALE; }
    rotated[h * PADDED + places.x] = values.x;
    rotated[h * PADDED + places.y] = values.y;
  }
  workgroupBarrier();
  for (var i = thread; i < 2u * D8; i += WORKGROUP) {
    let at = HEADS * PADDED + 8u * i;
    var scale = 1.0;
    if (HAS_NORMS && i < D8) { scale = head_scale[HEADS]; }
    let eight = eight_of(scale * vec4f(rotated[at], rotated[at + 1u], rotated[at + 2u], rotated[at + 3u]),
                         scale * vec4f(rotated[at + 4u], rotated[at + 5u], rotated[at + 6u], rotated[at + 7u]));
    newest[i] = eight;
    if (writes_newest) {
      let row = (kv_head * CTX_LEN + position) * D8;
      if (i < D8) {
        k_cache[row + i] = eight;
      } else {
        v_cache[row + i - D8] = eight;
      }
    }
  }
  workgroupBarrier();
}

fn q4_at(first_head: u32, heads: u32, h: u32, d: u32) -> vec4f {
  if (d >= PADDED) {
    return vec4f();
  }
  let at = h * PADDED + d;
  let values = vec4f(rotated[at], rotated[at + 1u], rotated[at + 2u], rotated[at + 3u]);
  if (HAS_NORMS) {
    return values * head_scale[h];
  }
  return values;
}

fn key_at(row: u32, column: u32, newest_row: u32) -> Eight {
  if (row == newest_row) {
    return newest[column];
  }
  return k_cache[row + column];
}
fn value_at(row: u32, column: u32, newest_row: u32) -> Eight {
  if (row == newest_row) {
    return newest[D8 + column];
  }
  return v_cache[row + column];
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(subgroup_id) subgroup: u32,
        @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_invocation_id) invocation: u32) {
  attend(group.x, group.y, subgroup * subgroup_size + invocation, invocation);
}
