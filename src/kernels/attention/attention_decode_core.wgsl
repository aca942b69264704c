// Decode attention with subgroup operations: what the entries share that differ in where q and the newest key are.
// One workgroup: HEADS query heads that share a kv head, one split of the keys. LANES lanes of a subgroup are one
// worker: it reads a key and its value together (coalesced, VECTORS times eight dimensions a lane), keeps its own
// softmax in registers, and goes on WORKERS keys further, KEYS of them at a time, so that loads overlap.
// No barrier inside the loop; at the end the workers are joined through workgroup memory.
// The entry has prepare(), q4_at(), key_at() and value_at(). Of a group's rest, `heads` are less than HEADS: the others
// are copies of the last that are never put.
// Barriers: worker_max before, worker_sum and gathered after the joint maximum; gathered free again per head.
// Error: f32 sums, relative L2 below 1e-5.
//!import attention/attention_cache_f16
//!import attention/attention_decode_range
//!import attention/attention_output_y

const kWorkers = WORKGROUP / LANES;

var<workgroup> worker_max: array<f32, HEADS * kWorkers>;
var<workgroup> worker_sum: array<f32, HEADS * kWorkers>;
var<workgroup> head_max: array<f32, HEADS>;
var<workgroup> gathered: array<vec4f, kWorkers * D8 * 2u>;

// `group`: kv head and chunk of its query heads; `split`: of the keys.
fn attend(group: u32, split: u32, thread: u32) {
  let keys = keys_of_step();
  let share = keys_per_split(keys);
  let begin = keys.begin + split * share;
  if (begin >= keys.end) {
    return;
  }
  let end = min(begin + share, keys.end);

  let worker = thread / LANES;
  let lane = thread % LANES;
  let kv_head = group / HEAD_CHUNKS;
  let first_in_group = group % HEAD_CHUNKS * HEADS;
  let heads = min(HEADS, GROUP - first_in_group);
  let first_head = kv_head * GROUP + first_in_group;
  let kv_base = kv_head * CTX_LEN * D8;

  prepare(first_head, heads, kv_head, end == keys.end && first_in_group == 0u && state.pos < CTX_LEN, thread);
  var q_low: array<vec4f, HEADS * VECTORS>;
  var q_high: array<vec4f, HEADS * VECTORS>;
  var low: array<vec4f, HEADS * VECTORS>;
  var high: array<vec4f, HEADS * VECTORS>;
  var highest: array<f32, HEADS>;
  var sum: array<f32, HEADS>;
  for (var h = 0u; h < HEADS; h++) {
    for (var v = 0u; v < VECTORS; v++) {
      let d = (lane + v * LANES) * 8u; // past the padded head: q is zero there, so keys do not matter
      q_low[h * VECTORS + v] = q4_at(first_head, heads, h, d);
      q_high[h * VECTORS + v] = q4_at(first_head, heads, h, d + 4u);
      low[h * VECTORS + v] = vec4f();
      high[h * VECTORS + v] = vec4f();
    }
    highest[h] = kLowest;
    sum[h] = 0.0;
  }

  let newest_row = kv_base + state.pos * D8;  // of a full context: none of the keys
  for (var tile = begin; tile < end; tile += kWorkers * KEYS) {
    var k: array<Eight, KEYS * VECTORS>;
    var values: array<Eight, KEYS * VECTORS>;
    for (var u = 0u; u < KEYS; u++) {
      let row = kv_base + min(tile + u * kWorkers + worker, end - 1u) * D8;
      for (var v = 0u; v < VECTORS; v++) {
        k[u * VECTORS + v] = key_at(row, min(lane + v * LANES, D8 - 1u), newest_row);
      }
    }
    for (var u = 0u; u < KEYS; u++) {
      let row = kv_base + min(tile + u * kWorkers + worker, end - 1u) * D8;
      for (var v = 0u; v < VECTORS; v++) {
        values[u * VECTORS + v] = value_at(row, min(lane + v * LANES, D8 - 1u), newest_row);
      }
    }

    var s: array<f32, HEADS * KEYS>;
    for (var i = 0u; i < HEADS * KEYS; i++) {
      s[i] = 0.0;
    }
    for (var u = 0u; u < KEYS; u++) {
      for (var v = 0u; v < VECTORS; v++) {
        let k_low = low4(k[u * VECTORS + v]);
        let k_high = high4(k[u * VECTORS + v]);
        for (var h = 0u; h < HEADS; h++) {
          s[h * KEYS + u] += dot(k_low, q_low[h * VECTORS + v]) + dot(k_high, q_high[h * VECTORS + v]);
        }
      }
    }
    for (var step = LANES / 2u; step > 0u; step >>= 1u) {
      for (var i = 0u; i < HEADS * KEYS; i++) {
        s[i] += subgroupShuffleXor(s[i], step);
      }
    }

    for (var h = 0u; h < HEADS; h++) {
      let before = highest[h];
      for (var u = 0u; u < KEYS; u++) {
        let seen = tile + u * kWorkers + worker < end;
        s[h * KEYS + u] = select(kLowest, logit(s[h * KEYS + u]), seen);
        highest[h] = max(highest[h], s[h * KEYS + u]);
      }
      let factor = exp2(before - highest[h]);
      sum[h] *= factor;
      for (var u = 0u; u < KEYS; u++) {
        let seen = tile + u * kWorkers + worker < end;
        s[h * KEYS + u] = select(0.0, exp2(s[h * KEYS + u] - highest[h]), seen);
        sum[h] += s[h * KEYS + u];
      }
      for (var v = 0u; v < VECTORS; v++) {
        low[h * VECTORS + v] *= factor;
        high[h * VECTORS + v] *= factor;
      }
    }
    for (var u = 0u; u < KEYS; u++) {
      for (var v = 0u; v < VECTORS; v++) {
        let v_low = low4(values[u * VECTORS + v]);
        let v_high = high4(values[u * VECTORS + v]);
        for (var h = 0u; h < HEADS; h++) {
          low[h * VECTORS + v] += s[h * KEYS + u] * v_low;
          high[h * VECTORS + v] += s[h * KEYS + u] * v_high;
        }
      }
    }
  }

  if (lane == 0u) {
    for (var h = 0u; h < HEADS; h++) {
      worker_max[h * kWorkers + worker] = highest[h];
    }
  }
  workgroupBarrier();
  for (var h = 0u; h < HEADS; h++) {
    var top = kLowest;
    for (var w = 0u; w < kWorkers; w++) {
      top = max(top, worker_max[h * kWorkers + w]);
    }
    let factor = exp2(highest[h] - top);
    if (thread == 0u) {
      head_max[h] = top;
    }
    for (var v = 0u; v < VECTORS; v++) {
      low[h * VECTORS + v] *= factor;
      high[h * VECTORS + v] *= factor;
    }
    if (lane == 0u) {
      worker_sum[h * kWorkers + worker] = sum[h] * factor;
    }
  }

  for (var h = 0u; h < heads; h++) {
    // Not low[h]: registers cannot be indexed by a variable without moving to memory.
    for (var i = 0u; i < HEADS * VECTORS; i++) {
      let column = lane + i % VECTORS * LANES;
      if (i / VECTORS == h && column < D8) {
        gathered[(worker * D8 + column) * 2u] = low[i];
        gathered[(worker * D8 + column) * 2u + 1u] = high[i];
      }
    }
    workgroupBarrier();
    for (var d4 = thread; d4 < D8 * 2u; d4 += WORKGROUP) {
      var weighted = vec4f();
      var total = 0.0;
      for (var w = 0u; w < kWorkers; w++) {
        weighted += gathered[w * D8 * 2u + d4];
        total += worker_sum[h * kWorkers + w];
      }
      for (var i = 0u; i < 4u; i++) {
        if (d4 * 4u + i < HEAD_DIM) {
          put(split, first_head, h, d4 * 4u + i, weighted[i], head_max[h], total);
        }
      }
    }
    workgroupBarrier();
  }
  finish(thread, first_head, heads);
}
