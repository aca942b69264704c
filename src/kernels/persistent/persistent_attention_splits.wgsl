// Attention inside persistent_layers for long contexts: HEADS query heads of a kv head and a split of the keys by one
// workgroup (attention_decode_core), then a head's splits reduced by one. All words of a step are sent, also those of
// splits without keys, since a word that is left would be taken for a later dispatch's when the tags have come round.
// Sibling with the same function: persistent_attention.
//!import attention/attention_decode_core
//!import attention/attention_no_gate
//!import persistent/persistent_heads
//!import persistent/persistent_send_head
//!import persistent/persistent_split_output

const kHeadGroups = N_KV_HEADS * HEAD_CHUNKS;
// In a reduction invocations have a column each, and as many as there are for it share its splits.
const kColumns = min(HEAD_DIM, WORKGROUP);
const kSharers = WORKGROUP / kColumns;
const kSplitsEach = (SPLITS + kSharers - 1u) / kSharers;

var<workgroup> split_pairs: array<f32, 2u * SPLITS>;
var<workgroup> column_parts: array<f32, WORKGROUP>;

struct Early {
  first_head: u32,
  heads: u32,
}

fn cached_key(at: u32) -> Eight { return cache[keys_at + at]; }
fn cached_value(at: u32) -> Eight { return cache[values_at + at]; }
fn load_before(row: u32, first_head: u32, heads: u32, kv_head: u32, thread: u32) -> Early {
  return Early(head_of_layer(first_head), heads);
}
fn prepare(row: u32, early: Early, kv_head: u32, writes_newest: bool, thread: u32) {
  bring_heads(early.first_head, early.heads, kv_head, writes_newest, thread);
}
fn q4_at(first_head: u32, heads: u32, h: u32, d: u32) -> vec4f { return head_quad_at(h, d); }
fn key_at(loaded: Eight, column: u32, is_newest: bool) -> Eight {
  if (is_newest) { return newest[column]; }
  return loaded;
}
fn value_at(loaded: Eight, column: u32, is_newest: bool) -> Eight {
  if (is_newest) { return newest[D8 + column]; }
  return loaded;
}

fn put_no_keys(group: u32, split: u32, thread: u32) {
  let in_group = group % HEAD_CHUNKS * HEADS;
  let heads = min(HEADS, GROUP - in_group);
  for (var i = thread; i < heads * (HEAD_DIM / 4u); i += WORKGROUP * one()) {
    let head = group / HEAD_CHUNKS * GROUP + in_group + i / (HEAD_DIM / 4u);
    put_part(split, head, i % (HEAD_DIM / 4u), vec4f(), kLowest, 0.0);
  }
}

fn reduce_head(head: u32, thread: u32, invocation: u32) {
  let part = min(thread / kColumns, kSharers - 1u);
  for (var first = 0u; first < HEAD_DIM; first += kColumns * one()) {
    let column = min(first + thread % kColumns, HEAD_DIM - 1u);
    let pair = min(thread, 2u * SPLITS - 1u);
    let pair_at = parts_at + kSplitPairs + 2u * (pair / 2u * N_HEADS + head) + pair % 2u;
    var words: array<u32, kSplitsEach>;
    var pair_word = 0u;
    var seen = 0u;
    loop {
      pair_word = look(pair_at) ^ tag;
      seen = pair_word;
      for (var e = 0u; e < kSplitsEach; e++) {
        let split = min(e * kSharers + part, SPLITS - 1u);
        words[e] = look(parts_at + (split * N_HEADS + head) * HEAD_DIM + column) ^ tag;
        seen |= words[e];
      }
      if (!is_stale(seen) || spins_left == 0u) { break; }
      wait_again(seen, 2u * kSplitsEach + 1u);  // the inner loop's iterations too
    }
    if (is_stale(seen)) { spins_left = 0u; }
    if (thread < 2u * SPLITS) { split_pairs[thread] = number_of(pair_word); }
    workgroupBarrier();
    var highest = kLowest;
    for (var s = 0u; s < SPLITS; s += one()) { highest = max(highest, split_pairs[2u * s]); }
    var sum = 0.0;
    for (var s = 0u; s < SPLITS; s += one()) { sum += split_pairs[2u * s + 1u] * exp2(split_pairs[2u * s] - highest); }
    var weighted = 0.0;
    for (var e = 0u; e < kSplitsEach; e++) {
      let split = e * kSharers + part;
      let factor = exp2(split_pairs[2u * min(split, SPLITS - 1u)] - highest);
      weighted += select(0.0, number_of(words[e]) * factor, split < SPLITS);
    }
    column_parts[thread] = weighted;
    workgroupBarrier();
    if (thread < kColumns && first + thread < HEAD_DIM) {
      for (var p = 1u; p < kSharers; p += one()) { weighted += column_parts[p * kColumns + thread]; }
      // See persistent_split_output.
      values[4u * (column % (HEAD_DIM / 4u)) + column / (HEAD_DIM / 4u)] = weighted / sum;
    }
  }
  send_head(head, thread, invocation);
}

// Every invocation calls it; it ends with the heads sent.
fn make_heads(thread: u32, invocation: u32, group: u32, layer: u32) {
  parts_at = qkv_at + PARTS_AT;
  workgroupBarrier();  // q, k and v of this workgroup are sent
  let row = row_of_layer(layer);
  let seen = keys_of_row(row);
  for (var item = group; item < kHeadGroups * SPLITS; item += GROUPS * one()) {
    let split = item / kHeadGroups;
    if (seen.begin + split * keys_per_split(seen) < seen.end) {
      attend(row, item % kHeadGroups, split, thread, invocation);
    } else {
      put_no_keys(item % kHeadGroups, split, thread);
    }
  }
  workgroupBarrier();  // splits of this workgroup are sent
  for (var head = group; head < N_HEADS; head += GROUPS * one()) { reduce_head(head, thread, invocation); }
}
