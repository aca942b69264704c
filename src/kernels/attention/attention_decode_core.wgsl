// Decode attention with subgroup operations: the common part of the entries, which differ in where q and the newest key
// are.
// One workgroup: HEADS query heads that share a kv head, one split of the keys. INVOCATIONS_PER_KEY invocations of a
// subgroup are one worker. It reads a key and its value together (coalesced, VECTORS times eight dimensions an
// invocation) and keeps its own softmax in registers. It goes on WORKERS keys further, KEYS at a time, so that loads
// overlap. Each invocation computes only its own logits of a tile; the others fetch their exponentials from there.
// No barrier inside the loop; at the end the workers are reduced: attention_decode_reduce.
// The entry has cached_key() and cached_value(), load_before(), prepare(), q4_at(), and key_at() and value_at(), which
// replace the loaded values of the newest key. In the rest of a group, `heads` are less than HEADS: the others are
// copies of the last that are never put.
// Barriers: a head's results of all subgroups; gathered free again for the next head.
// Error: f32 sums, relative L2 below 1e-5.
//!import attention/attention_cache_f16
//!import attention/attention_decode_range
//!import attention/attention_decode_reduce

const kWorkers = WORKGROUP / INVOCATIONS_PER_KEY;

// A worker has a tile's VALUES sums q.k, one for each head and key. They are spread over its invocations: KEY_PARTS *
// HEAD_PARTS = PARTS invocations have OWN_KEYS * OWN_HEADS sums each, SHARE invocations the same ones. Halving goes on
// while halves are whole.
const VALUES = HEADS * KEYS; // value u * HEADS + h
const PARTS = min(INVOCATIONS_PER_KEY, VALUES & (~VALUES + 1u));
const SHARE = INVOCATIONS_PER_KEY / PARTS;
const KEY_PARTS = min(PARTS, KEYS); // KEYS is a power of two
const HEAD_PARTS = PARTS / KEY_PARTS;
const OWN_KEYS = KEYS / KEY_PARTS;
const OWN_HEADS = HEADS / HEAD_PARTS;
const OWN = OWN_KEYS * OWN_HEADS;

// An invocation keeps the half of its 2 * half sums that its bit names, and adds its partner's parts of the same sums.
// Called with constants, so that loops unroll: an array indexed by a variable moves from registers to memory.
fn halve(s: ptr<function, array<f32, VALUES>>, half: u32, distance: u32, rank: u32) {
  let upper = (rank & distance) != 0u;
  for (var i = 0u; i < half; i++) {
    let kept = select((*s)[i], (*s)[i + half], upper);
    let given = select((*s)[i + half], (*s)[i], upper);
    (*s)[i] = kept + subgroupShuffleXor(given, distance);
  }
}

// From what each invocation has of every sum to the whole of its own OWN sums.
fn spread_sums(s: ptr<function, array<f32, VALUES>>, rank: u32) {
//!repeat parts = 1, 2, 4, 8, 16, 32
  if (PARTS > $(parts)u) { halve(s, VALUES / $(2 * parts)u, INVOCATIONS_PER_KEY / $(2 * parts)u, rank); }
//!end
  for (var distance = SHARE / 2u; distance > 0u; distance >>= 1u) {
    for (var i = 0u; i < OWN; i++) {
      (*s)[i] += subgroupShuffleXor((*s)[i], distance);
    }
  }
}

// The position of one of a tile's keys; past the end that of some key of the context, which is not counted.
fn tile_position(tile: u32, u: u32, worker: u32) -> u32 { return min(tile + u * kWorkers + worker, CTX_LEN - 1u); }

fn load_tile(keys: ptr<function, array<Eight, KEYS * VECTORS>>, values: ptr<function, array<Eight, KEYS * VECTORS>>,
             row: u32, kv_head: u32, tile: u32, worker: u32, rank: u32) {
  for (var u = 0u; u < KEYS; u++) {
    let at = cache_row(row, kv_head, tile_position(tile, u, worker)) * D8;
    for (var v = 0u; v < VECTORS; v++) { (*keys)[u * VECTORS + v] = cached_key(at + min(rank + v * INVOCATIONS_PER_KEY, D8 - 1u)); }
  }
  for (var u = 0u; u < KEYS; u++) {
    let at = cache_row(row, kv_head, tile_position(tile, u, worker)) * D8;
    for (var v = 0u; v < VECTORS; v++) { (*values)[u * VECTORS + v] = cached_value(at + min(rank + v * INVOCATIONS_PER_KEY, D8 - 1u)); }
  }
}

// `row` is a row of q; its heads are counted on from those of the rows before. `group` is the kv head and the chunk of
// its query heads, `split` one of the keys, `invocation` one of the subgroup.
fn attend(row: u32, group: u32, split: u32, thread: u32, invocation: u32) {
  let seen = keys_of_row(row);
  let share = keys_per_split(seen);
  let begin = seen.begin + split * share;
  if (begin >= seen.end && (SPLITS > 1u || seen.end == 0u)) {
    return;
  }
  let end = min(begin + share, seen.end);

  let worker = thread / INVOCATIONS_PER_KEY;
  let rank = thread % INVOCATIONS_PER_KEY;
  let kv_head = group / HEAD_CHUNKS;
  let first_in_group = group % HEAD_CHUNKS * HEADS;
  let heads = min(HEADS, GROUP - first_in_group);
  let first_head = row * N_HEADS + kv_head * GROUP + first_in_group;

  // All loads of the first tile and of prepare() are under way before anything waits for one.
  let early = load_before(row, first_head, heads, kv_head, thread);
  var k: array<Eight, KEYS * VECTORS>;
  var values: array<Eight, KEYS * VECTORS>;
  load_tile(&k, &values, row, kv_head, begin, worker, rank);

  prepare(row, early, kv_head, end == seen.end && first_in_group == 0u && row_position(row) < CTX_LEN, thread);
  var q_low: array<vec4f, HEADS * VECTORS>;
  var q_high: array<vec4f, HEADS * VECTORS>;
  var low: array<vec4f, HEADS * VECTORS>;
  var high: array<vec4f, HEADS * VECTORS>;
  var highest: array<f32, OWN_HEADS>;
  var sum: array<f32, OWN_HEADS>; // over the invocation's own keys
  for (var h = 0u; h < HEADS; h++) {
    for (var v = 0u; v < VECTORS; v++) {
      let d = (rank + v * INVOCATIONS_PER_KEY) * 8u; // past the padded head: q is zero there, so keys do not matter
      q_low[h * VECTORS + v] = q4_at(first_head, heads, h, d);
      q_high[h * VECTORS + v] = q4_at(first_head, heads, h, d + 4u);
      low[h * VECTORS + v] = vec4f();
      high[h * VECTORS + v] = vec4f();
    }
  }
  for (var h = 0u; h < OWN_HEADS; h++) {
    highest[h] = kLowest;
    sum[h] = 0.0;
  }
  let first_of_worker = invocation - rank;
  let own_key = rank / (SHARE * HEAD_PARTS) * OWN_KEYS;

  for (var tile = begin; tile < end; tile += kWorkers * KEYS) {
    if (tile != begin) { load_tile(&k, &values, row, kv_head, tile, worker, rank); }
    // Only a last tile has the newest key, and keys that do not count.
    if (tile + kWorkers * KEYS >= end) {
      for (var u = 0u; u < KEYS; u++) {
        let is_newest = tile_position(tile, u, worker) == row_position(row);  // of a full context: none
        let counts = tile + u * kWorkers + worker < end;
        for (var v = 0u; v < VECTORS; v++) {
          let column = min(rank + v * INVOCATIONS_PER_KEY, D8 - 1u);
          k[u * VECTORS + v] = key_at(k[u * VECTORS + v], column, is_newest);
          // Values past the end may be infinite, and zero times infinity is not zero.
          values[u * VECTORS + v] = eight_if(value_at(values[u * VECTORS + v], column, is_newest), counts);
        }
      }
    }

    var s: array<f32, VALUES>;
    for (var i = 0u; i < VALUES; i++) {
      s[i] = 0.0;
    }
    for (var u = 0u; u < KEYS; u++) {
      for (var v = 0u; v < VECTORS; v++) {
        let k_low = low4(k[u * VECTORS + v]);
        let k_high = high4(k[u * VECTORS + v]);
        for (var h = 0u; h < HEADS; h++) {
          s[u * HEADS + h] += dot(k_low, q_low[h * VECTORS + v]) + dot(k_high, q_high[h * VECTORS + v]);
        }
      }
    }
    spread_sums(&s, rank);

    var factor: array<f32, OWN_HEADS>;
    for (var h = 0u; h < OWN_HEADS; h++) {
      factor[h] = highest[h];
    }
    for (var u = 0u; u < OWN_KEYS; u++) {
      let counts = tile + (own_key + u) * kWorkers + worker < end;
      for (var h = 0u; h < OWN_HEADS; h++) {
        s[u * OWN_HEADS + h] = select(kLowest, logit(s[u * OWN_HEADS + h]), counts);
        highest[h] = max(highest[h], s[u * OWN_HEADS + h]);
      }
    }
    for (var distance = SHARE * HEAD_PARTS; distance < INVOCATIONS_PER_KEY; distance <<= 1u) {
      for (var h = 0u; h < OWN_HEADS; h++) {
        highest[h] = max(highest[h], subgroupShuffleXor(highest[h], distance));
      }
    }
    for (var h = 0u; h < OWN_HEADS; h++) {
      factor[h] = exp2(factor[h] - highest[h]);
      sum[h] *= factor[h];
    }
    for (var u = 0u; u < OWN_KEYS; u++) {
      let counts = tile + (own_key + u) * kWorkers + worker < end;
      for (var h = 0u; h < OWN_HEADS; h++) {
        s[u * OWN_HEADS + h] = select(0.0, exp2(s[u * OWN_HEADS + h] - highest[h]), counts);
        sum[h] += s[u * OWN_HEADS + h];
      }
    }

    for (var h = 0u; h < HEADS; h++) {
      let of_head = subgroupShuffle(factor[h % OWN_HEADS], first_of_worker + h / OWN_HEADS * SHARE);
      for (var v = 0u; v < VECTORS; v++) {
        low[h * VECTORS + v] *= of_head;
        high[h * VECTORS + v] *= of_head;
      }
    }
    for (var u = 0u; u < KEYS; u++) {
      var p: array<f32, HEADS>;
      for (var h = 0u; h < HEADS; h++) {
        let part = u / OWN_KEYS * HEAD_PARTS + h / OWN_HEADS;
        p[h] = subgroupShuffle(s[u % OWN_KEYS * OWN_HEADS + h % OWN_HEADS], first_of_worker + part * SHARE);
      }
      for (var v = 0u; v < VECTORS; v++) {
        let v_low = low4(values[u * VECTORS + v]);
        let v_high = high4(values[u * VECTORS + v]);
        for (var h = 0u; h < HEADS; h++) {
          low[h * VECTORS + v] += p[h] * v_low;
          high[h * VECTORS + v] += p[h] * v_high;
        }
      }
    }
  }

  reduce_workers(&highest, &sum, &low, &high, thread, invocation);
  for (var h = 0u; h < HEADS; h++) {
    gather_head(h, &low, &high, thread);
    workgroupBarrier();
    put_head(split, first_head, h, heads, thread);
    if (h + 1u < HEADS) { workgroupBarrier(); }  // gathered is free again
  }
}
