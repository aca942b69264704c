// Prefill attention on the matrix units: f16 inputs, f32 sums (fragments of 16 x 16 x 16), online softmax in tiles.
// One workgroup: 16 query rows of one head for each of SUBGROUPS subgroups, which holds their q and their results in
// fragments. It walks over tiles of KEYS keys, the longest rows first. A fragment's numbers cannot be touched one by
// one, so logits pass through workgroup memory on their way to probabilities; results stay where they are, because
// the maximum they are relative to is only raised when a row's logits exceed it by kSlack: then, rarely, they pass too.
// A subgroup's invocations: two to a row, each every other key.
// Workgroup memory: `tile`, KEYS keys, then as many values, [key][dimension], zeros behind HEAD_DIM; `logits` and
// `probabilities`, of each subgroup [row][key]. Barriers: around each filling of `tile`, and where a subgroup reads
// its own logits.
// Needs a head_dim of whole fragments, at most 256, and a cache in f16. Error: q and probabilities rounded to f16:
// relative L2 below 1e-3.
// Read next: attention_prefill.wgsl (the twin), common/fragments.
//!import attention/attention_one_run
//!import common/fragments
//!import common/f16_store
//!import attention/attention_normalise
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k_cache: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> v_cache: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) var<storage, read_write> result: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> y_f16: array<vec2<u32>>;

const KEYS = 32u;
const ROWS = 16u * SUBGROUPS;
const WORKGROUP = 32u * SUBGROUPS;
const kQuads = (HEAD_DIM + 63u) / 64u;  // four fragments each
const kEights = kQuads * 8u;
const kStride = kQuads * 64u + 8u;  // 16 bytes more, so that rows begin in different banks
const kLogitStride = KEYS + 4u;
const kProbabilityStride = KEYS + 8u;
const kEach = KEYS * kEights / WORKGROUP;
const kHalfKeys = KEYS / 2u;
const kUnseen: f32 = -1e29;  // logits below are masked ones
const kSlack: f32 = 8.0;     // probabilities reach 2^8, far from the end of f16

var<workgroup> tile: array<f16, KEYS * kStride>;
var<workgroup> logits: array<f32, SUBGROUPS * 16u * kLogitStride>;
var<workgroup> probabilities: array<f16, SUBGROUPS * 16u * kProbabilityStride>;
var<workgroup> raised: array<u32, SUBGROUPS>;  // whether a row's maximum was

// Position of a row; a row past the cache (it was not stored) sees what the last one sees.
fn position_of(run: Run, row: u32) -> u32 {
  return min(run.position + row - run.first_row, CTX_LEN - 1u);
}

fn put_pair(at: u32, word: u32) {
  let pair = bitcast<vec2<f16>>(word);
  tile[at] = pair.x;
  tile[at + 1u] = pair.y;
}

// The i-th eight numbers of `tile`.
fn put_eight(i: u32, eight: vec4<u32>) {
  let at = i / kEights * kStride + i % kEights * 8u;
  put_pair(at, eight.x);
  put_pair(at + 2u, eight.y);
  put_pair(at + 4u, eight.z);
  put_pair(at + 6u, eight.w);
}

fn q_eight(row: u32, head: u32, d8: u32) -> vec4<u32> {
  if (d8 >= D8) { return vec4<u32>(); }
  let at = ((row * N_HEADS + head) * D8 + d8) * 2u;
  let low = q[at] * Q_SCALE;
  let high = q[at + 1u] * Q_SCALE;
  return vec4<u32>(pack2x16float(low.xy), pack2x16float(low.zw), pack2x16float(high.xy), pack2x16float(high.zw));
}

fn load_query(at: u32) -> Left {
  return subgroupMatrixLoad<Left>(&tile, at, false, kStride);
}

fn load_keys(at: u32) -> Right {
  return subgroupMatrixLoad<Right>(&tile, at, true, kStride);
}

fn load_values(at: u32) -> Right {
  return subgroupMatrixLoad<Right>(&tile, at, false, kStride);
}

// What an invocation knows of its row.
struct Row {
  logits_at: u32,  // of the subgroup
  at: u32,         // of the invocation's eight of a fragment
  out: u32,        // row of y
  is_there: bool,
  head: u32,
  odd: u32,
}

// Multiplies the fragment that the subgroup stored at its logits.
fn scale_stored(row: Row, factor: f32) {
  workgroupBarrier();
  for (var i = 0u; i < 8u; i++) { logits[row.at + i] *= factor; }
  workgroupBarrier();
}

fn load_stored(row: Row) -> Sum {
  let sum = subgroupMatrixLoad<Sum>(&logits, row.logits_at, false, kLogitStride);
  workgroupBarrier();
  return sum;
}

fn write_sum(sum: Sum, row: Row, d: u32, factor: f32) {
  workgroupBarrier();
  subgroupMatrixStore(&logits, row.logits_at, sum, false, kLogitStride);
  workgroupBarrier();
  let i = row.at;
  let low = vec4<f32>(logits[i], logits[i + 1u], logits[i + 2u], logits[i + 3u]) * factor;
  let high = vec4<f32>(logits[i + 4u], logits[i + 5u], logits[i + 6u], logits[i + 7u]) * factor;
  if (row.is_there && d < HEAD_DIM) {
    let column = row.head * HEAD_DIM + d + row.odd * 8u;
    if (HAS_F32) {
      let at = (row.out * N_HEADS * HEAD_DIM + column) / 4u;
      result[at] = low;
      result[at + 1u] = high;
    }
    if (HAS_F16) {
      store_f16_quad(row.out, column, low);
      store_f16_quad(row.out, column + 4u, high);
    }
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32, @builtin(subgroup_id) subgroup: u32,
        @builtin(subgroup_invocation_id) subgroup_invocation: u32) {
  let run = run_of(group.z);
  let first_row = run.first_row + (groups.x - 1u - group.x) * ROWS;
  let last_row = run.last_row;
  if (first_row > last_row) {
    return;
  }
  let head = group.y;
  let kv_head = head / GROUP;
  let end = position_of(run, min(first_row + ROWS - 1u, last_row)) + 1u;
  let first_position = position_of(run, first_row);
  let begin = (first_position - min(first_position, WINDOW - 1u)) / KEYS * KEYS;

  // q through `tile`, KEYS rows at a time.
  var q0: Left;
  var q1: Left;
  var q2: Left;
  var q3: Left;
  var q4: Left;
  var q5: Left;
  var q6: Left;
  var q7: Left;
  var q8: Left;
  var q9: Left;
  var q10: Left;
  var q11: Left;
  var q12: Left;
  var q13: Left;
  var q14: Left;
  var q15: Left;
  for (var part = 0u; part < ROWS; part += KEYS) {
    workgroupBarrier();
    for (var i = thread; i < KEYS * kEights; i += WORKGROUP) {
      put_eight(i, q_eight(min(first_row + part + i / kEights, last_row), head, i % kEights));
    }
    workgroupBarrier();
    if (subgroup * 16u >= part && subgroup * 16u < part + KEYS) {
      let at = (subgroup * 16u - part) * kStride;
      q0 = load_query(at);
      q1 = load_query(at + 16u);
      q2 = load_query(at + 32u);
      q3 = load_query(at + 48u);
      if (kQuads > 1u) {
        q4 = load_query(at + 64u);
        q5 = load_query(at + 80u);
        q6 = load_query(at + 96u);
        q7 = load_query(at + 112u);
      }
      if (kQuads > 2u) {
        q8 = load_query(at + 128u);
        q9 = load_query(at + 144u);
        q10 = load_query(at + 160u);
        q11 = load_query(at + 176u);
      }
      if (kQuads > 3u) {
        q12 = load_query(at + 192u);
        q13 = load_query(at + 208u);
        q14 = load_query(at + 224u);
        q15 = load_query(at + 240u);
      }
    }
  }

  var row: Row;
  row.odd = subgroup_invocation & 1u;
  row.head = head;
  row.out = first_row + subgroup * 16u + subgroup_invocation / 2u;
  row.is_there = row.out <= last_row;
  row.logits_at = subgroup * 16u * kLogitStride;
  row.at = row.logits_at + subgroup_invocation / 2u * kLogitStride + row.odd * 8u;
  let position = position_of(run, min(row.out, last_row));
  let first_logit = row.logits_at + subgroup_invocation / 2u * kLogitStride + row.odd;
  let probabilities_at = subgroup * 16u * kProbabilityStride;
  let first_probability = probabilities_at + subgroup_invocation / 2u * kProbabilityStride + row.odd;
  var highest = kLowest;
  var sum = 0.0;
  var y0: Sum;
  var y1: Sum;
  var y2: Sum;
  var y3: Sum;
  var y4: Sum;
  var y5: Sum;
  var y6: Sum;
  var y7: Sum;
  var y8: Sum;
  var y9: Sum;
  var y10: Sum;
  var y11: Sum;
  var y12: Sum;
  var y13: Sum;
  var y14: Sum;
  var y15: Sum;

  // Of keys and values alike: the eights this invocation brings, held in registers until their turn.
  var fetched: array<vec4<u32>, kEach>;
  for (var e = 0u; e < kEach; e++) {
    let i = thread + e * WORKGROUP;
    fetched[e] = k_cache[cache_row(first_row, kv_head, min(begin + i / kEights, end - 1u)) * D8 + min(i % kEights, D8 - 1u)];
  }
  for (var first_key = begin; first_key < end; first_key += KEYS) {
    workgroupBarrier();
    for (var e = 0u; e < kEach; e++) { put_eight(thread + e * WORKGROUP, fetched[e]); }
    workgroupBarrier();
    for (var e = 0u; e < kEach; e++) {
      let i = thread + e * WORKGROUP;
      fetched[e] = v_cache[cache_row(first_row, kv_head, min(first_key + i / kEights, end - 1u)) * D8 + min(i % kEights, D8 - 1u)];
    }
    var low = Sum();
    var high = Sum();
    low = subgroupMatrixMultiplyAccumulate(q0, load_keys(0u), low);
    high = subgroupMatrixMultiplyAccumulate(q0, load_keys(16u * kStride + 0u), high);
    low = subgroupMatrixMultiplyAccumulate(q1, load_keys(16u), low);
    high = subgroupMatrixMultiplyAccumulate(q1, load_keys(16u * kStride + 16u), high);
    low = subgroupMatrixMultiplyAccumulate(q2, load_keys(32u), low);
    high = subgroupMatrixMultiplyAccumulate(q2, load_keys(16u * kStride + 32u), high);
    low = subgroupMatrixMultiplyAccumulate(q3, load_keys(48u), low);
    high = subgroupMatrixMultiplyAccumulate(q3, load_keys(16u * kStride + 48u), high);
    if (kQuads > 1u) {
      low = subgroupMatrixMultiplyAccumulate(q4, load_keys(64u), low);
      high = subgroupMatrixMultiplyAccumulate(q4, load_keys(16u * kStride + 64u), high);
      low = subgroupMatrixMultiplyAccumulate(q5, load_keys(80u), low);
      high = subgroupMatrixMultiplyAccumulate(q5, load_keys(16u * kStride + 80u), high);
      low = subgroupMatrixMultiplyAccumulate(q6, load_keys(96u), low);
      high = subgroupMatrixMultiplyAccumulate(q6, load_keys(16u * kStride + 96u), high);
      low = subgroupMatrixMultiplyAccumulate(q7, load_keys(112u), low);
      high = subgroupMatrixMultiplyAccumulate(q7, load_keys(16u * kStride + 112u), high);
    }
    if (kQuads > 2u) {
      low = subgroupMatrixMultiplyAccumulate(q8, load_keys(128u), low);
      high = subgroupMatrixMultiplyAccumulate(q8, load_keys(16u * kStride + 128u), high);
      low = subgroupMatrixMultiplyAccumulate(q9, load_keys(144u), low);
      high = subgroupMatrixMultiplyAccumulate(q9, load_keys(16u * kStride + 144u), high);
      low = subgroupMatrixMultiplyAccumulate(q10, load_keys(160u), low);
      high = subgroupMatrixMultiplyAccumulate(q10, load_keys(16u * kStride + 160u), high);
      low = subgroupMatrixMultiplyAccumulate(q11, load_keys(176u), low);
      high = subgroupMatrixMultiplyAccumulate(q11, load_keys(16u * kStride + 176u), high);
    }
    if (kQuads > 3u) {
      low = subgroupMatrixMultiplyAccumulate(q12, load_keys(192u), low);
      high = subgroupMatrixMultiplyAccumulate(q12, load_keys(16u * kStride + 192u), high);
      low = subgroupMatrixMultiplyAccumulate(q13, load_keys(208u), low);
      high = subgroupMatrixMultiplyAccumulate(q13, load_keys(16u * kStride + 208u), high);
      low = subgroupMatrixMultiplyAccumulate(q14, load_keys(224u), low);
      high = subgroupMatrixMultiplyAccumulate(q14, load_keys(16u * kStride + 224u), high);
      low = subgroupMatrixMultiplyAccumulate(q15, load_keys(240u), low);
      high = subgroupMatrixMultiplyAccumulate(q15, load_keys(16u * kStride + 240u), high);
    }
    subgroupMatrixStore(&logits, row.logits_at, low, false, kLogitStride);
    subgroupMatrixStore(&logits, row.logits_at + 16u, high, false, kLogitStride);
    workgroupBarrier();
    for (var e = 0u; e < kEach; e++) { put_eight(thread + e * WORKGROUP, fetched[e]); }

    var l: array<f32, kHalfKeys>;
    var top = kLowest;
    for (var i = 0u; i < kHalfKeys; i++) {
      let key = first_key + 2u * i + row.odd;
      let seen = key <= position && position - key < WINDOW;
      l[i] = select(kLowest, logit(logits[first_logit + 2u * i]), seen);
      top = max(top, l[i]);
    }
    top = max(top, subgroupShuffleXor(top, 1u));
    let is_raised = top > highest + kSlack;
    let factor = select(1.0, exp2(highest - top), is_raised);
    let any_passes = subgroupAny(is_raised && highest > kUnseen);
    highest = select(highest, top, is_raised);
    var added = 0.0;
    for (var i = 0u; i < kHalfKeys; i++) {
      let p = f16(select(0.0, exp2(l[i] - highest), l[i] > kUnseen));
      added += f32(p);
      probabilities[first_probability + 2u * i] = p;
    }
    sum = sum * factor + added;
    if (subgroup_invocation == 0u) { raised[subgroup] = u32(any_passes); }
    let all_raised = workgroupUniformLoad(&raised);  // a barrier, too: values and probabilities are complete
    var passes = 0u;
    for (var i = 0u; i < SUBGROUPS; i++) { passes += all_raised[i]; }
    if (passes != 0u) {
      subgroupMatrixStore(&logits, row.logits_at, y0, false, kLogitStride);
      scale_stored(row, factor);
      y0 = load_stored(row);
      subgroupMatrixStore(&logits, row.logits_at, y1, false, kLogitStride);
      scale_stored(row, factor);
      y1 = load_stored(row);
      subgroupMatrixStore(&logits, row.logits_at, y2, false, kLogitStride);
      scale_stored(row, factor);
      y2 = load_stored(row);
      subgroupMatrixStore(&logits, row.logits_at, y3, false, kLogitStride);
      scale_stored(row, factor);
      y3 = load_stored(row);
      if (kQuads > 1u) {
        subgroupMatrixStore(&logits, row.logits_at, y4, false, kLogitStride);
        scale_stored(row, factor);
        y4 = load_stored(row);
        subgroupMatrixStore(&logits, row.logits_at, y5, false, kLogitStride);
        scale_stored(row, factor);
        y5 = load_stored(row);
        subgroupMatrixStore(&logits, row.logits_at, y6, false, kLogitStride);
        scale_stored(row, factor);
        y6 = load_stored(row);
        subgroupMatrixStore(&logits, row.logits_at, y7, false, kLogitStride);
        scale_stored(row, factor);
        y7 = load_stored(row);
      }
      if (kQuads > 2u) {
        subgroupMatrixStore(&logits, row.logits_at, y8, false, kLogitStride);
        scale_stored(row, factor);
        y8 = load_stored(row);
        subgroupMatrixStore(&logits, row.logits_at, y9, false, kLogitStride);
        scale_stored(row, factor);
        y9 = load_stored(row);
        subgroupMatrixStore(&logits, row.logits_at, y10, false, kLogitStride);
        scale_stored(row, factor);
        y10 = load_stored(row);
        subgroupMatrixStore(&logits, row.logits_at, y11, false, kLogitStride);
        scale_stored(row, factor);
        y11 = load_stored(row);
      }
      if (kQuads > 3u) {
        subgroupMatrixStore(&logits, row.logits_at, y12, false, kLogitStride);
        scale_stored(row, factor);
        y12 = load_stored(row);
        subgroupMatrixStore(&logits, row.logits_at, y13, false, kLogitStride);
        scale_stored(row, factor);
        y13 = load_stored(row);
        subgroupMatrixStore(&logits, row.logits_at, y14, false, kLogitStride);
        scale_stored(row, factor);
        y14 = load_stored(row);
        subgroupMatrixStore(&logits, row.logits_at, y15, false, kLogitStride);
        scale_stored(row, factor);
        y15 = load_stored(row);
      }
    }
    for (var e = 0u; e < kEach; e++) {
      let i = thread + e * WORKGROUP;
      fetched[e] = k_cache[cache_row(first_row, kv_head, min(first_key + KEYS + i / kEights, end - 1u)) * D8 + min(i % kEights, D8 - 1u)];
    }
    for (var j = 0u; j < KEYS; j += 16u) {
      let left = subgroupMatrixLoad<Left>(&probabilities, probabilities_at + j, false, kProbabilityStride);
      let at = j * kStride;
      y0 = subgroupMatrixMultiplyAccumulate(left, load_values(at), y0);
      y1 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 16u), y1);
      y2 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 32u), y2);
      y3 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 48u), y3);
      if (kQuads > 1u) {
        y4 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 64u), y4);
        y5 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 80u), y5);
        y6 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 96u), y6);
        y7 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 112u), y7);
      }
      if (kQuads > 2u) {
        y8 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 128u), y8);
        y9 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 144u), y9);
        y10 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 160u), y10);
        y11 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 176u), y11);
      }
      if (kQuads > 3u) {
        y12 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 192u), y12);
        y13 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 208u), y13);
        y14 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 224u), y14);
        y15 = subgroupMatrixMultiplyAccumulate(left, load_values(at + 240u), y15);
      }
    }
  }

  sum += subgroupShuffleXor(sum, 1u);
  let factor = normalise(head, 1.0, highest, sum);
  write_sum(y0, row, 0u, factor);
  write_sum(y1, row, 16u, factor);
  write_sum(y2, row, 32u, factor);
  write_sum(y3, row, 48u, factor);
  if (kQuads > 1u) {
    write_sum(y4, row, 64u, factor);
    write_sum(y5, row, 80u, factor);
    write_sum(y6, row, 96u, factor);
    write_sum(y7, row, 112u, factor);
  }
  if (kQuads > 2u) {
    write_sum(y8, row, 128u, factor);
    write_sum(y9, row, 144u, factor);
    write_sum(y10, row, 160u, factor);
    write_sum(y11, row, 176u, factor);
  }
  if (kQuads > 3u) {
    write_sum(y12, row, 192u, factor);
    write_sum(y13, row, 208u, factor);
    write_sum(y14, row, 224u, factor);
    write_sum(y15, row, 240u, factor);
  }
}
