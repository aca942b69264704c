// Attention of one query head by one workgroup, inside persistent_layers: q and the newest key and value come from the
// words that this layer's first product sends, older keys from the cache, which earlier dispatches filled. The first head
// of a kv head writes the newest key and value for later dispatches; what another loads of that row meanwhile is dropped.
// LANES neighbouring invocations are a worker, as in attention_decode_core, but each knows all logits of its keys.
// The first tile is loaded before q is waited for.
// Bindings of the entry: state, angles, cache (keys and values of all layers). Set before: the layer's places.
//!import attention/attention_cache_f16
//!import attention/attention_cache_f16_store
//!import attention/attention_decode_range
//!import attention/attention_decode_join
//!import rope/rope_pair

// What attention_decode_join asks for: one head, whose sums all lanes of a worker have.
const OWN_HEADS = HEADS;
const HEAD_PARTS = 1u;
const SHARE = LANES;

const kWorkers = WORKGROUP / LANES;
const kPadded = 8u * D8;

var<workgroup> rotated: array<f32, 3u * kPadded>; // the query head, the newest key, the newest value
var<workgroup> newest: array<Eight, 2u * D8>;     // key, value

var<private> keys_at: u32;   // in `cache`
var<private> values_at: u32;
var<private> qkv_at: u32;    // in `exchange`

fn bring_heads(head: u32, kv_head: u32, thread: u32) {
  let position = state.pos;
  const kPairs = kPadded / 2u;
  for (var i = thread; i < 3u * kPairs; i += WORKGROUP * one()) {
    let h = i / kPairs;
    let pair = i % kPairs;
    let source = select(N_HEADS + (h - 1u) * N_KV_HEADS + kv_head, head, h == 0u);
    let places = pair_places(pair);
    let first = qkv_at + source * HEAD_DIM;
    var step = vec2u();
    if (ROTARY_DIM > 0u) { step = angles[min(pair, ROTARY_DIM / 2u - 1u)]; }
    var pair_values = vec2f(receive_f32(first + places.x), receive_f32(first + places.y));
    if (h < 2u) { pair_values = rotate_pair(pair_values, pair, position, step); }
    if (h == 0u) { pair_values *= Q_SCALE; }
    rotated[h * kPadded + places.x] = pair_values.x;
    rotated[h * kPadded + places.y] = pair_values.y;
  }
  workgroupBarrier();
  let writes_newest = head % GROUP == 0u && position < CTX_LEN;
  for (var i = thread; i < 2u * D8; i += WORKGROUP * one()) {
    let at = kPadded + 8u * i;
    let eight = eight_of(vec4f(rotated[at], rotated[at + 1u], rotated[at + 2u], rotated[at + 3u]),
                         vec4f(rotated[at + 4u], rotated[at + 5u], rotated[at + 6u], rotated[at + 7u]));
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

fn q4_at(d: u32) -> vec4f {
  if (d >= kPadded) {
    return vec4f();
  }
  return vec4f(rotated[d], rotated[d + 1u], rotated[d + 2u], rotated[d + 3u]);
}

fn attend(head: u32, thread: u32, invocation: u32) {
  let seen = keys_of_row(0u);
  let worker = thread / LANES;
  let lane = thread % LANES;
  let kv_head = head / GROUP;
  let kv_base = kv_head * CTX_LEN * D8;
  var q_low: array<vec4f, VECTORS>;
  var q_high: array<vec4f, VECTORS>;
  var low: array<vec4f, VECTORS>;
  var high: array<vec4f, VECTORS>;
  var highest: array<f32, HEADS>;
  var sum: array<f32, HEADS>;
  for (var v = 0u; v < VECTORS; v++) {
    low[v] = vec4f();
    high[v] = vec4f();
  }
  highest[0] = kLowest;
  sum[0] = 0.0;

  for (var first = seen.begin; first < seen.end; first += kWorkers * KEYS * one()) {
    // Past the end: of some key of the context, which is not counted.
    var keys: array<Eight, KEYS * VECTORS>;
    var tile_values: array<Eight, KEYS * VECTORS>;
    for (var u = 0u; u < KEYS; u++) {
      let place = kv_base + min(first + u * kWorkers + worker, CTX_LEN - 1u) * D8;
      for (var v = 0u; v < VECTORS; v++) {
        let column = min(lane + v * LANES, D8 - 1u);
        keys[u * VECTORS + v] = cache[keys_at + place + column];
        tile_values[u * VECTORS + v] = cache[values_at + place + column];
      }
    }
    if (first == seen.begin) {
      bring_heads(head, kv_head, thread);
      for (var v = 0u; v < VECTORS; v++) {
        q_low[v] = q4_at((lane + v * LANES) * 8u);
        q_high[v] = q4_at((lane + v * LANES) * 8u + 4u);
      }
    }
    var logits: array<f32, KEYS>;
    var top = highest[0];
    for (var u = 0u; u < KEYS; u++) {
      let key = first + u * kWorkers + worker;
      let counts = key < seen.end;
      var share = 0.0;
      for (var v = 0u; v < VECTORS; v++) {
        let column = min(lane + v * LANES, D8 - 1u);
        if (key == state.pos) {
          keys[u * VECTORS + v] = newest[column];
          tile_values[u * VECTORS + v] = newest[D8 + column];
        }
        // What lies past the end may be infinite, and zero times that is not zero.
        tile_values[u * VECTORS + v] = eight_if(tile_values[u * VECTORS + v], counts);
        share += dot(q_low[v], low4(keys[u * VECTORS + v])) + dot(q_high[v], high4(keys[u * VECTORS + v]));
      }
      for (var distance = 1u; distance < LANES; distance <<= 1u) { share += subgroupShuffleXor(share, distance); }
      logits[u] = select(kLowest, share, counts);
      top = max(top, logits[u]);
    }
    let factor = exp2(highest[0] - top);
    highest[0] = top;
    sum[0] *= factor;
    for (var v = 0u; v < VECTORS; v++) {
      low[v] *= factor;
      high[v] *= factor;
    }
    for (var u = 0u; u < KEYS; u++) {
      let weight = select(0.0, exp2(logits[u] - top), first + u * kWorkers + worker < seen.end);
      sum[0] += weight;
      for (var v = 0u; v < VECTORS; v++) {
        low[v] += weight * low4(tile_values[u * VECTORS + v]);
        high[v] += weight * high4(tile_values[u * VECTORS + v]);
      }
    }
  }

  join_workers(&highest, &sum, &low, &high, thread, invocation);
  gather_head(0u, &low, &high, thread);
  workgroupBarrier();
  put_head(0u, head, 0u, 1u, thread);
  send_head(head, thread, invocation);
}
