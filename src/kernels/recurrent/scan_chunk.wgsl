// scan, eight rows at a time (the chunkwise form of Yang et al. 2024, "Parallelizing Linear Transformers with the Delta
// Rule over Sequence Length"): the state before a chunk times its keys and queries, keys times keys and queries, then
// eight steps that read only these products, then the state after the chunk in one sum.
// One workgroup walks 16 columns of one head (x of the grid) of one run (y). An invocation has one column of the state
// and one of eight parts of the keys; of the products of rows it has 2 x 2 in the same part. The next chunk is loaded
// meanwhile.
// Shared: keys and queries of a chunk, its values and rates; partial products, then their sums. Between two barriers
// each is either written or read. Error: relative L2 < 1e-5 over 64 rows.
//!import recurrent/runs_one
//!import recurrent/scan_delta
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> x: array<vec4f>; // rows of X_STRIDE: queries, keys and values
@group(0) @binding(2) var<storage, read> gates: array<f32>; // rows of GATES_STRIDE
@group(0) @binding(3) var<storage, read> vectors: array<f32>;
@group(0) @binding(4) var<storage, read_write> kept: array<f32>; // [slots, HEADS, KEY_DIM, VALUE_DIM]
@group(0) @binding(5) var<storage, read_write> y: array<f32>; // [rows, HEADS * VALUE_DIM]

const kChunk = 8u;
const kColumns = 16u;
const kParts = 8u;
const kWorkgroup = kColumns * kParts;
const kQuads = (KEY_DIM + 4u * kParts - 1u) / (4u * kParts); // of an invocation, to load as well
const kRowQuads = kQuads * kParts; // of a key, padded by zeros
const kRowStride = kRowQuads + 1u; // rows of one quad in other banks
const kPairTiles = kColumns; // of 2 x 2 rows
const kGroupsOfHead = (VALUE_DIM + kColumns - 1u) / kColumns;

var<workgroup> tile: array<vec4f, 2u * kChunk * kRowStride>; // keys, then queries
var<workgroup> values: array<f32, kWorkgroup>; // [row, column]
var<workgroup> rates: array<vec2f, kChunk>; // decay, rate
var<workgroup> scales: array<vec2f, kChunk>; // of keys, of queries
var<workgroup> products: array<vec2f, kChunk * kWorkgroup>; // parts of state . key and state . query
var<workgroup> pairs: array<vec4f, 2u * kWorkgroup>; // parts of key . key, of query . key
var<workgroup> lengths: array<vec2f, kWorkgroup>; // parts of query . query
var<workgroup> totals: array<vec2f, kWorkgroup>; // [row, column]
var<workgroup> grams: array<vec4f, 4u * kChunk>; // key . key, then query . key [row, row]

// An invocation's loads of a chunk.
struct Loaded {
  quads: array<vec4f, kQuads>,
  value: f32,
  gate: vec2f, // of the first eight invocations
}

fn load_chunk(first: u32, rows: u32, head: u32, t: u32, column: u32) -> Loaded {
  var loaded: Loaded;
  let key_head = select(head / (HEADS / KEY_HEADS), head % KEY_HEADS, IS_TILED);
  for (var i = 0u; i < kQuads; i++) {
    let line = (i * kWorkgroup + t) / kRowQuads;
    let quad = (i * kWorkgroup + t) % kRowQuads;
    loaded.quads[i] = vec4f();
    if (line % kChunk < rows && quad * 4u < KEY_DIM) {
      let first_column = select(QUERY_COLUMN, KEY_COLUMN, line < kChunk) + key_head * KEY_DIM;
      loaded.quads[i] = x[((first + line % kChunk) * X_STRIDE + first_column) / 4u + quad];
    }
  }
  loaded.value = 0.0;
  if (t / kColumns < rows && column < VALUE_DIM) {
    let at = (first + t / kColumns) * X_STRIDE + VALUE_COLUMN + head * VALUE_DIM + column;
    loaded.value = x[at / 4u][at % 4u];
  }
  loaded.gate = vec2f();
  if (t < rows) {
    loaded.gate = gates_of(first + t, head);
  }
  return loaded;
}

// Rows past the last one decay nothing and add nothing.
fn store_chunk(loaded: Loaded, rows: u32, head: u32, t: u32) {
  for (var i = 0u; i < kQuads; i++) {
    let at = i * kWorkgroup + t;
    tile[at / kRowQuads * kRowStride + at % kRowQuads] = loaded.quads[i];
  }
  values[t] = loaded.value;
  if (t < kChunk) {
    rates[t] = select(vec2f(1.0, 0.0), rates_of(loaded.gate, head), t < rows);
  }
}

fn key_at(row: u32, quad: u32) -> vec4f { return tile[row * kRowStride + quad]; }
fn query_at(row: u32, quad: u32) -> vec4f { return tile[(kChunk + row) * kRowStride + quad]; }
fn sum_of(v: vec4f) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// This invocation's part of the products of two rows and two.
fn multiply_rows(t: u32) {
  let i = t % kPairTiles / 4u * 2u;
  let j = t % 4u * 2u;
  var of_keys = vec4f();
  var of_queries = vec4f();
  var squares = vec2f();
  for (var quad = t / kPairTiles * kQuads; quad < (t / kPairTiles + 1u) * kQuads; quad++) {
    let key = key_at(j, quad);
    let next_key = key_at(j + 1u, quad);
    let upper = key_at(i, quad);
    let lower = key_at(i + 1u, quad);
    let query = query_at(i, quad);
    let next_query = query_at(i + 1u, quad);
    of_keys += vec4f(dot(upper, key), dot(upper, next_key), dot(lower, key), dot(lower, next_key));
    of_queries += vec4f(dot(query, key), dot(query, next_key), dot(next_query, key), dot(next_query, next_key));
    squares += vec2f(dot(query, query), dot(next_query, next_query));
  }
  pairs[t] = of_keys;
  pairs[kWorkgroup + t] = of_queries;
  lengths[t] = squares;
}

// The sums of the parts: totals by all invocations, four products of a row with rows by 32, the scales of a row by
// eight.
fn sum_parts(t: u32) {
  var total = vec2f();
  for (var part = 0u; part < kParts; part++) {
    total += products[t / kColumns * kWorkgroup + part * kColumns + t % kColumns];
  }
  totals[t] = total;
  if (t < 4u * kChunk) {
    let row = t / 2u % kChunk;
    var sum = vec4f();
    for (var part = 0u; part < kParts; part++) {
      let at = t / (2u * kChunk) * kWorkgroup + part * kPairTiles + row / 2u * 4u + t % 2u * 2u;
      sum += select(vec4f(pairs[at].xy, pairs[at + 1u].xy), vec4f(pairs[at].zw, pairs[at + 1u].zw), row % 2u == 1u);
    }
    grams[t] = sum;
  } else if (t < 5u * kChunk) {
    let row = t % kChunk;
    var squares = vec2f();
    for (var part = 0u; part < kParts; part++) {
      let at = part * kPairTiles + row / 2u * 5u; // on the diagonal
      squares += select(vec2f(pairs[at].x, lengths[at].x), vec2f(pairs[at].w, lengths[at].y), row % 2u == 1u);
    }
    scales[row] = scales_of(squares.x, squares.y);
  }
}

@compute @workgroup_size(kWorkgroup)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let run = run_at(group.y);
  let head = group.x / kGroupsOfHead;
  let column = group.x % kGroupsOfHead * kColumns + t % kColumns;
  let part = t / kColumns;
  let is_column = column < VALUE_DIM;
  let first_key = part * kQuads * 4u;
  let from_first = ((run.from_slot * HEADS + head) * KEY_DIM + first_key) * VALUE_DIM + column;
  let kept_first = ((run.slot * HEADS + head) * KEY_DIM + first_key) * VALUE_DIM + column;

  var s: array<vec4f, kQuads>;
  for (var i = 0u; i < kQuads; i++) {
    var quad = vec4f();
    for (var j = 0u; j < 4u; j++) {
      if (is_column && run.advances && run.position != 0u && first_key + i * 4u + j < KEY_DIM) {
        quad[j] = kept[from_first + (i * 4u + j) * VALUE_DIM];
      }
    }
    s[i] = quad;
  }

  var loaded = load_chunk(run.first, min(kChunk, run.rows), head, t, column);
  for (var done = 0u; done < run.rows; done += kChunk) {
    let rows = min(kChunk, run.rows - done);
    store_chunk(loaded, rows, head, t);
    workgroupBarrier(); // tile, values, rates
    let next = done + rows;
    loaded = load_chunk(run.first + next, min(kChunk, run.rows - next), head, t, column);
    for (var row = 0u; row < kChunk; row++) {
      var with_key = vec4f();
      var with_query = vec4f();
      for (var i = 0u; i < kQuads; i++) {
        with_key += s[i] * key_at(row, part * kQuads + i);
        with_query += s[i] * query_at(row, part * kQuads + i);
      }
      products[row * kWorkgroup + t] = vec2f(sum_of(with_key), sum_of(with_query));
    }
    multiply_rows(t);
    workgroupBarrier(); // products, pairs, lengths
    sum_parts(t);
    workgroupBarrier(); // totals, grams, scales
    var decay = 1.0; // from the chunk's beginning
    var low = vec4f(); // what each row has added, decayed since
    var high = vec4f();
    for (var row = 0u; row < kChunk; row++) {
      let rate = rates[row];
      let scale = scales[row];
      let total = totals[row * kColumns + t % kColumns];
      let value = values[row * kColumns + t % kColumns];
      decay *= rate.x;
      low *= rate.x;
      high *= rate.x;
      let known = decay * total.x + dot(grams[2u * row], low) + dot(grams[2u * row + 1u], high);
      let added = addition(value, scale.x * known, rate.y) * scale.x;
      low = select(low, vec4f(added), vec4u(0u, 1u, 2u, 3u) == vec4u(row));
      high = select(high, vec4f(added), vec4u(4u, 5u, 6u, 7u) == vec4u(row));
      if (row == part && row < rows && is_column) {
        let at = 2u * (kChunk + row);
        let answer = decay * total.y + dot(grams[at], low) + dot(grams[at + 1u], high);
        y[((run.first + done + row) * HEADS + head) * VALUE_DIM + column] = scale.y * answer + direct(head, value);
      }
    }
    for (var i = 0u; i < kQuads; i++) {
      let quad = part * kQuads + i;
      s[i] = decay * s[i] + low.x * key_at(0u, quad) + low.y * key_at(1u, quad) + low.z * key_at(2u, quad) +
             low.w * key_at(3u, quad) + high.x * key_at(4u, quad) + high.y * key_at(5u, quad) +
             high.z * key_at(6u, quad) + high.w * key_at(7u, quad);
    }
    workgroupBarrier(); // all are read
  }

  if (!is_column || !run.advances || run.rows == 0u) {
    return;
  }
  for (var i = 0u; i < kQuads; i++) {
    for (var j = 0u; j < 4u; j++) {
      if (first_key + i * 4u + j < KEY_DIM) {
        kept[kept_first + (i * 4u + j) * VALUE_DIM] = s[i][j];
      }
    }
  }
}
