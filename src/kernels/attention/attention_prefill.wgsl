// Prefill attention in tiles with online softmax; no optional feature.
// One workgroup: ROWS query rows of one head. It walks over tiles of KEYS keys, from the first key that any of its rows
// sees to the last (attention_span). One invocation: four rows x kQuads times four keys of the logits, then the same
// four rows x kFours times four dimensions of the result, all in registers. The kColumns invocations that share four
// rows keep the same running maximum and each its own part of the sum.
// Workgroup memory `pool`, in vec4f: CHUNK dimensions of k [dimension][key / 4] and q [dimension][row / 4] while logits
// are made; afterwards the probabilities [key][row / 4] in their place, then VALUE_KEYS keys of v. `maxima` lies after
// both. Barriers: before and after each filling of the pool, and around `maxima`.
// Error: f32 sums, relative L2 below 1e-5.
//!import attention/attention_one_run
//!import attention/attention_span
//!import attention/attention_cache_f16
//!import attention/attention_normalise
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> k_cache: array<Eight>;
@group(0) @binding(3) var<storage, read> v_cache: array<Eight>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) var<storage, read_write> result: array<f32>;

const kRowGroups = ROWS / 4u;
const kColumns = WORKGROUP / kRowGroups;
const kKeyQuads = KEYS / 4u;
const kQuads = kKeyQuads / kColumns;
const kD4 = D8 * 2u;
const kFours = (kD4 + kColumns - 1u) / kColumns;
const kPStride = kRowGroups + 1u; // one more, so that a column's stores fall into different banks
const kStageQ = CHUNK * kKeyQuads;
const kStageEnd = CHUNK * (kKeyQuads + kRowGroups);
const kValues = KEYS * kPStride;
const kMaxima = max(kStageEnd, kValues);
const kPool = max(kMaxima + WORKGROUP, kValues + VALUE_KEYS * kD4);
const kUnseen: f32 = -1e29; // logits below are masked ones

var<workgroup> pool: array<vec4f, kPool>;

struct Tile {
  row: u32,      // first of the workgroup's rows
  run: Run,      // that they are of
  head: u32,
  end: u32,      // keys any row sees end here
}

// Position of a row; a row past the cache (it was not stored) sees what the last one sees.
fn position_of(run: Run, row: u32) -> u32 {
  return min(run.position + row - run.first_row, CTX_LEN - 1u);
}

// Where the cache has the key or value at a position, in elements.
fn key_place(tile: Tile, position: u32) -> u32 {
  return cache_row(tile.row, tile.head / GROUP, min(position, tile.end - 1u)) * D8;
}

fn q_at(tile: Tile, row: u32, d: u32) -> f32 {
  let at = (min(row, tile.run.last_row) * N_HEADS + tile.head) * HEAD_DIM + min(d, HEAD_DIM - 1u);
  return select(0.0, q[at] * Q_SCALE, d < HEAD_DIM);
}

fn stage_chunk(tile: Tile, first_key: u32, first_d: u32, dims: u32, thread: u32) {
  for (var i = thread; i < dims * kRowGroups; i += WORKGROUP) {
    let row = tile.row + i / dims * 4u;
    let d = first_d + i % dims;
    pool[kStageQ + i % dims * kRowGroups + i / dims] =
        vec4f(q_at(tile, row, d), q_at(tile, row + 1u, d), q_at(tile, row + 2u, d), q_at(tile, row + 3u, d));
  }
  for (var i = thread; i < dims / 8u * kKeyQuads; i += WORKGROUP) {
    let quad = i % kKeyQuads;
    let d8 = i / kKeyQuads;
    let key = first_key + quad * 4u;
    let at = first_d / 8u + d8;
    let e0 = k_cache[at + key_place(tile, key)];
    let e1 = k_cache[at + key_place(tile, key + 1u)];
    let e2 = k_cache[at + key_place(tile, key + 2u)];
    let e3 = k_cache[at + key_place(tile, key + 3u)];
    let low = transpose(mat4x4f(low4(e0), low4(e1), low4(e2), low4(e3)));
    let high = transpose(mat4x4f(high4(e0), high4(e1), high4(e2), high4(e3)));
    let to = d8 * 8u * kKeyQuads + quad;
    pool[to] = low[0];
    pool[to + kKeyQuads] = low[1];
    pool[to + 2u * kKeyQuads] = low[2];
    pool[to + 3u * kKeyQuads] = low[3];
    pool[to + 4u * kKeyQuads] = high[0];
    pool[to + 5u * kKeyQuads] = high[1];
    pool[to + 6u * kKeyQuads] = high[2];
    pool[to + 7u * kKeyQuads] = high[3];
  }
}

// The probabilities lie in the order in which the columns made them: this is the key of a place.
fn key_of_place(place: u32) -> u32 {
  let made = place / kColumns;
  return (place % kColumns + made / 4u * kColumns) * 4u + made % 4u;
}

fn stage_values(tile: Tile, first_key: u32, first_place: u32, thread: u32) {
  for (var i = thread; i < VALUE_KEYS * D8; i += WORKGROUP) {
    let key = first_key + key_of_place(min(first_place + i / D8, KEYS - 1u));
    let eight = v_cache[key_place(tile, key) + i % D8];
    pool[kValues + i * 2u] = low4(eight);
    pool[kValues + i * 2u + 1u] = high4(eight);
  }
}

fn masked(s: vec4f, key: u32, first_keys: vec4u, last_keys: vec4u) -> vec4f {
  let seen = (vec4u(key) >= first_keys) & (vec4u(key) <= last_keys);
  return select(vec4f(kLowest), vec4f(logit(s.x), logit(s.y), logit(s.z), logit(s.w)), seen);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  var tile: Tile;
  tile.run = run_of(group.z);
  tile.row = tile.run.first_row + group.x * ROWS;
  if (tile.row > tile.run.last_row) {
    return;
  }
  tile.head = group.y;
  tile.end = last_key_of(tile.run, min(tile.row + ROWS - 1u, tile.run.last_row)) + 1u;
  let begin = first_key_of(tile.run, tile.row) / KEYS * KEYS;

  let rows = thread / kColumns; // which four rows
  let column = thread % kColumns;
  let row = tile.row + rows * 4u;
  var first_keys: vec4u;
  var last_keys: vec4u;
  for (var i = 0u; i < 4u; i++) {
    first_keys[i] = first_key_of(tile.run, row + i);
    last_keys[i] = last_key_of(tile.run, row + i);
  }
  var highest = vec4f(kLowest);
  var sum = vec4f();
  var o: array<vec4f, kFours * 4u>;
  for (var i = 0u; i < kFours * 4u; i++) {
    o[i] = vec4f();
  }

  for (var first_key = begin; first_key < tile.end; first_key += KEYS) {
    var s: array<vec4f, kQuads * 4u>;
    for (var i = 0u; i < kQuads * 4u; i++) {
      s[i] = vec4f();
    }
    for (var first_d = 0u; first_d < D8 * 8u; first_d += CHUNK) {
      let dims = min(CHUNK, D8 * 8u - first_d);
      workgroupBarrier();
      stage_chunk(tile, first_key, first_d, dims, thread);
      workgroupBarrier();
      for (var d = 0u; d < dims; d++) {
        let q4 = pool[kStageQ + d * kRowGroups + rows];
        for (var j = 0u; j < kQuads; j++) {
          let k4 = pool[d * kKeyQuads + j * kColumns + column];
          s[j * 4u] += q4 * k4.x;
          s[j * 4u + 1u] += q4 * k4.y;
          s[j * 4u + 2u] += q4 * k4.z;
          s[j * 4u + 3u] += q4 * k4.w;
        }
      }
    }

    var top = highest;
    for (var i = 0u; i < kQuads * 4u; i++) {
      let key = first_key + (column + i / 4u * kColumns) * 4u + i % 4u;
      s[i] = masked(s[i], key, first_keys, last_keys);
      top = max(top, s[i]);
    }
    pool[kMaxima + thread] = top;
    workgroupBarrier();
    for (var c = 0u; c < kColumns; c++) {
      top = max(top, pool[kMaxima + rows * kColumns + c]);
    }
    let factor = exp2(highest - top);
    highest = top;
    sum *= factor;
    for (var i = 0u; i < kQuads * 4u; i++) {
      let p = select(vec4f(), exp2(s[i] - top), s[i] > vec4f(kUnseen));
      sum += p;
      pool[(i * kColumns + column) * kPStride + rows] = p;
    }
    for (var f = 0u; f < kFours; f++) {
      o[f * 4u] *= factor.x;
      o[f * 4u + 1u] *= factor.y;
      o[f * 4u + 2u] *= factor.z;
      o[f * 4u + 3u] *= factor.w;
    }

    for (var first = 0u; first < KEYS; first += VALUE_KEYS) {
      workgroupBarrier();
      stage_values(tile, first_key, first, thread);
      workgroupBarrier();
      let count = min(VALUE_KEYS, KEYS - first);
      for (var i = 0u; i < count; i++) {
        let p = pool[(first + i) * kPStride + rows];
        for (var f = 0u; f < kFours; f++) {
          let v = pool[kValues + i * kD4 + min(column + f * kColumns, kD4 - 1u)];
          o[f * 4u] += p.x * v;
          o[f * 4u + 1u] += p.y * v;
          o[f * 4u + 2u] += p.z * v;
          o[f * 4u + 3u] += p.w * v;
        }
      }
    }
  }

  workgroupBarrier();
  pool[thread] = sum;
  workgroupBarrier();
  sum = vec4f();
  for (var c = 0u; c < kColumns; c++) {
    sum += pool[rows * kColumns + c];
  }
  for (var r = 0u; r < 4u; r++) {
    if (row + r <= tile.run.last_row) {
      let factor = normalise(tile.head, 1.0, highest[r], sum[r]);
      for (var f = 0u; f < kFours; f++) {
        let d = (column + f * kColumns) * 4u;
        let values = o[f * 4u + r] * factor;
        let at = ((row + r) * N_HEADS + tile.head) * HEAD_DIM + d;
        for (var i = 0u; i < min(4u, HEAD_DIM - min(d, HEAD_DIM)); i++) {
          result[at + i] = values[i];
        }
      }
    }
  }
}
