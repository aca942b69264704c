// Attention of one query head by one workgroup, inside persistent_layers, for short contexts. INVOCATIONS_PER_KEY
// neighbouring invocations are a worker, as in attention_decode_core, but each knows all logits of its keys. The first
// tile is loaded before q is waited for. Sibling with the same function: persistent_attention_splits.
//!import attention/attention_decode_reduce
//!import attention/attention_no_gate
//!import persistent/persistent_heads
//!import persistent/persistent_send_head

// These constants are for attention_decode_reduce: one head, whose sums all invocations of a worker have.
const OWN_HEADS = HEADS;
const HEAD_PARTS = 1u;
const SHARE = INVOCATIONS_PER_KEY;

const kWorkers = WORKGROUP / INVOCATIONS_PER_KEY;

fn attend(layer: u32, head: u32, thread: u32, invocation: u32) {
  let seen = keys_of_row(row_of_layer(layer));
  let worker = thread / INVOCATIONS_PER_KEY;
  let rank = thread % INVOCATIONS_PER_KEY;
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
        let column = min(rank + v * INVOCATIONS_PER_KEY, D8 - 1u);
        keys[u * VECTORS + v] = cache[keys_at + place + column];
        tile_values[u * VECTORS + v] = cache[values_at + place + column];
      }
    }
    if (first == seen.begin) {
      bring_heads(head, 1u, kv_head, head % GROUP == 0u && state.pos < CTX_LEN, thread);
      for (var v = 0u; v < VECTORS; v++) {
        q_low[v] = head_quad_at(0u, (rank + v * INVOCATIONS_PER_KEY) * 8u);
        q_high[v] = head_quad_at(0u, (rank + v * INVOCATIONS_PER_KEY) * 8u + 4u);
      }
    }
    var logits: array<f32, KEYS>;
    var top = highest[0];
    for (var u = 0u; u < KEYS; u++) {
      let key = first + u * kWorkers + worker;
      let counts = key < seen.end;
      var share = 0.0;
      for (var v = 0u; v < VECTORS; v++) {
        let column = min(rank + v * INVOCATIONS_PER_KEY, D8 - 1u);
        if (key == state.pos) {
          keys[u * VECTORS + v] = newest[column];
          tile_values[u * VECTORS + v] = newest[D8 + column];
        }
        // Values past the end may be infinite, and zero times infinity is not zero.
        tile_values[u * VECTORS + v] = eight_if(tile_values[u * VECTORS + v], counts);
        share += dot(q_low[v], low4(keys[u * VECTORS + v])) + dot(q_high[v], high4(keys[u * VECTORS + v]));
      }
      for (var distance = 1u; distance < INVOCATIONS_PER_KEY; distance <<= 1u) { share += subgroupShuffleXor(share, distance); }
      logits[u] = select(kLowest, logit(share), counts);
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

  reduce_workers(&highest, &sum, &low, &high, thread, invocation);
  gather_head(0u, &low, &high, thread);
  workgroupBarrier();
  put_head(0u, head, 0u, 1u, thread);
  send_head(head, thread, invocation);
}

// Every invocation calls it; it ends with the heads sent.
fn make_heads(thread: u32, invocation: u32, group: u32, layer: u32) {
  workgroupBarrier();  // q, k and v of this workgroup are sent
  for (var head = group; head < N_HEADS; head += GROUPS * one()) { attend(layer, head, thread, invocation); }
}
