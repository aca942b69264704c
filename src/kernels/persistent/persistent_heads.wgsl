// The heads that attention inside persistent_layers begins with, from the words that this layer's first product sends:
// HEADS query heads, rotated and scaled, and the newest key and value, also as the cache has them. Older keys and values
// come from the cache, which earlier dispatches filled; one workgroup writes the newest there for later ones, and what
// another loads of that row meanwhile is dropped.
// Norms of heads: persistent_head_plain or persistent_head_norms; windows and rotations: persistent_alike or
// persistent_sliding.
// Bindings of the entry: state, angles, cache (keys and values of all layers), exchange. Set before: the layer's places.
// Barriers in bring_heads(): rotated, then newest.
//!import attention/attention_cache_f16
//!import attention/attention_cache_f16_store
//!import attention/attention_decode_range
//!import persistent/persistent_exchange
//!import persistent/persistent_alike
//!import persistent/persistent_head_plain
//!import rope/rope_pair

const kPadded = 8u * D8;

var<workgroup> rotated: array<f32, (HEADS + 2u) * kPadded>; // the query heads, the newest key, the newest value
var<workgroup> newest: array<Eight, 2u * D8>;               // key, value

var<private> keys_at: u32;   // in `cache`
var<private> values_at: u32;
var<private> qkv_at: u32;    // in `exchange`
var<private> qk_norms_at: u32;  // in `vectors`

// `heads` from `first_head` on; of HEADS the others are copies of the last.
fn bring_heads(first_head: u32, heads: u32, kv_head: u32, writes_newest: bool, thread: u32) {
  let position = state.pos;
  const kPairs = kPadded / 2u;
  for (var i = thread; i < (HEADS + 2u) * kPairs; i += WORKGROUP * one()) {
    let h = i / kPairs;
    let pair = i % kPairs;
    let source = select(first_head + min(h, heads - 1u), N_HEADS + (h - HEADS) * N_KV_HEADS + kv_head, h >= HEADS);
    let places = pair_places(pair);
    let first = qkv_at + source * HEAD_DIM;
    var step = vec2u();
    if (ROTARY_DIM > 0u) { step = angles[angle_place(min(pair, ROTARY_DIM / 2u - 1u))]; }
    let weights = head_weights(h, places);
    var pair_values = receive_two(first + places.x, first + places.y);
    pair_values = weigh_pair(h, pair, pair_values, weights);
    if (h <= HEADS) { pair_values = lengthen_pair(pair, rotate_pair(0u, pair_values, pair, position, step)); }
    if (h < HEADS) { pair_values *= Q_SCALE; }
    rotated[h * kPadded + places.x] = pair_values.x;
    rotated[h * kPadded + places.y] = pair_values.y;
  }
  workgroupBarrier();
  make_head_factors(thread);
  for (var i = thread; i < 2u * D8; i += WORKGROUP * one()) {
    let at = HEADS * kPadded + 8u * i;
    var low = vec4f(rotated[at], rotated[at + 1u], rotated[at + 2u], rotated[at + 3u]);
    var high = vec4f(rotated[at + 4u], rotated[at + 5u], rotated[at + 6u], rotated[at + 7u]);
    if (i < D8) {
      low = normed_head(HEADS, low);
      high = normed_head(HEADS, high);
    }
    let eight = eight_of(low, high);
    newest[i] = eight;
    if (writes_newest) {
      let place = (kv_head * CTX_LEN + position) * D8;
      if (i < D8) {
        cache[keys_at + place + i] = eight;
      } else {
        cache[values_at + place + i - D8] = eight;
      }
    }
  }
  workgroupBarrier();
}

fn head_quad_at(h: u32, d: u32) -> vec4f {
  if (d >= kPadded) {
    return vec4f();
  }
  let at = h * kPadded + d;
  return normed_head(h, vec4f(rotated[at], rotated[at + 1u], rotated[at + 2u], rotated[at + 3u]));
}
