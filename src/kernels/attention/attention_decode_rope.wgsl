// Decode attention with subgroup operations that also does what rope/ does: rotates q and the newest key, and writes
// the newest key and value into the cache. See attention_decode_core. Twin of attention_decode_subgroup. Several rows (z of
// the grid) are of a sequence each: a row's newest key is of no use to the others.
// The newest key and value are used from workgroup memory, rounded as the cache rounds them; the first workgroup of the
// kv head whose keys include them writes them. Other workgroups may load the old row meanwhile, and drop it.
// Barriers in prepare(): rotated, then newest.
// Heads may be normalised first, each alone or, with NORMS_OF_ROWS, by all of the row's q or k, whose squares each
// workgroup sums. What a head is multiplied with for that goes past the rotation, which is linear: the sums of squares
// are complete after the barrier that the rotated heads need anyway.
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
const PAIRS = PADDED / 2u;
const ROTATED = (HEADS + 2u) * PAIRS;  // query heads, the newest key, the newest value
const ROTATED_EACH = (ROTATED + WORKGROUP - 1u) / WORKGROUP;

var<workgroup> rotated: array<f32, 2u * ROTATED>;
var<workgroup> newest: array<Eight, 2u * D8>;  // key, value
var<workgroup> square_parts: array<f32, (HEADS + 1u) * kParts>;

var<private> head_scale: array<f32, HEADS + 1u>; // of the query heads, of the newest key

fn cached_key(at: u32) -> Eight { return k_cache[at]; }
fn cached_value(at: u32) -> Eight { return v_cache[at]; }

// What an invocation brings of the heads: pairs of values, the weights of their norms, the steps of their angles.
struct Early {
  values: array<vec2f, ROTATED_EACH>,
  weights: array<vec2f, ROTATED_EACH>,
  steps: array<vec2u, ROTATED_EACH>,
}

fn load_before(row: u32, first_head: u32, heads: u32, kv_head: u32, thread: u32) -> Early {
  var early: Early;
  let base = row * QKV_STRIDE + QKV_COLUMN;
  let first_of_row = first_head - row * N_HEADS;
  for (var e = 0u; e < ROTATED_EACH; e++) {
    let i = min(thread + e * WORKGROUP, ROTATED - 1u);
    let h = i / PAIRS;
    let pair = i % PAIRS;
    var head = first_of_row + min(h, heads - 1u);
    if (h >= HEADS) { head = N_HEADS + (h - HEADS) * N_KV_HEADS + kv_head; }
    let places = pair_places(pair);
    let x = min(places.x, HEAD_DIM - 1u);
    let y = min(places.y, HEAD_DIM - 1u);
    early.values[e] = vec2f(qkv[base + head * HEAD_DIM + x], qkv[base + head * HEAD_DIM + y]);
    if (HAS_NORMS) {
      var weights = select(0u, HEAD_DIM, h == HEADS);
      if (NORMS_OF_ROWS) { weights = select(0u, head * HEAD_DIM, h <= HEADS); }
      early.weights[e] = vec2f(sinks[weights + x], sinks[weights + y]);
    }
    if (ROTARY_DIM > 0u) { early.steps[e] = table[min(pair, ROTARY_DIM / 2u - 1u)]; }
  }
  return early;
}

// An invocation's part of the sum of squares of `count` values.
fn square_part(first: u32, count: u32, thread: u32) -> f32 {
  var sum = 0.0;
  for (var i = 0u; i < count; i += WORKGROUP) {
    let value = qkv[first + min(i + thread, count - 1u)];
    sum += select(0.0, value * value, i + thread < count);
  }
  return sum;
}

// Of query head h, or of the newest key: the values that its norm is of.
fn normed_values(h: u32) -> u32 {
  if (NORMS_OF_ROWS) { return HEAD_DIM * select(N_HEADS, N_KV_HEADS, h == HEADS); }
  return HEAD_DIM;
}

fn prepare(row: u32, early: Early, kv_head: u32, writes_newest: bool, thread: u32) {
  let position = row_position(row);
  var squares: array<f32, HEADS + 1u>;
  for (var h = 0u; h <= HEADS; h++) { squares[h] = 0.0; }
  for (var e = 0u; e < ROTATED_EACH; e++) {
    let i = thread + e * WORKGROUP;
    let h = i / PAIRS;
    let pair = i % PAIRS;
    let places = pair_places(pair);
    let is_value = vec2<bool>(places.x < HEAD_DIM, places.y < HEAD_DIM);
    var values = select(vec2f(), early.values[e], is_value);
    if (HAS_NORMS) {
      for (var of_head = 0u; of_head <= HEADS && !NORMS_OF_ROWS; of_head++) {
        squares[of_head] += select(0.0, dot(values, values), of_head == h);
      }
      if (h <= HEADS) { values *= early.weights[e]; }
    }
    if (h <= HEADS) { values = rotate_pair(row, values, pair, position, early.steps[e]); }
    if (h < HEADS) { values *= Q_SCALE; }
    if (i < ROTATED) {
      rotated[h * PADDED + places.x] = values.x;
      rotated[h * PADDED + places.y] = values.y;
    }
  }
  if (NORMS_OF_ROWS) {
    let q = row * QKV_STRIDE + QKV_COLUMN;
    squares[HEADS] = square_part(q + N_HEADS * HEAD_DIM, N_KV_HEADS * HEAD_DIM, thread);
    let of_q = square_part(q, N_HEADS * HEAD_DIM, thread);
    for (var h = 0u; h < HEADS; h++) { squares[h] = of_q; }
  }
  if (HAS_NORMS) {
    for (var h = 0u; h <= HEADS; h++) {
      for (var distance = 1u; distance < SUBGROUP; distance <<= 1u) {
        squares[h] += subgroupShuffleXor(squares[h], distance);
      }
      if (thread % SUBGROUP == 0u) { square_parts[h * kParts + thread / SUBGROUP] = squares[h]; }
    }
  }
  workgroupBarrier();
  if (HAS_NORMS) {
    for (var h = 0u; h <= HEADS; h++) {
      var total = 0.0;
      for (var p = 0u; p < kParts; p++) { total += square_parts[h * kParts + p]; }
      head_scale[h] = inverseSqrt(total / f32(normed_values(h)) + NORM_EPS);
    }
  }
  for (var i = thread; i < 2u * D8; i += WORKGROUP) {
    let at = HEADS * PADDED + 8u * i;
    var scale = 1.0;
    if (HAS_NORMS && i < D8) { scale = head_scale[HEADS]; }
    let eight = eight_of(scale * vec4f(rotated[at], rotated[at + 1u], rotated[at + 2u], rotated[at + 3u]),
                         scale * vec4f(rotated[at + 4u], rotated[at + 5u], rotated[at + 6u], rotated[at + 7u]));
    newest[i] = eight;
    if (writes_newest) {
      let at = cache_row(row, kv_head, position) * D8;
      if (i < D8) {
        k_cache[at + i] = eight;
      } else {
        v_cache[at + i - D8] = eight;
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

// The sigmoids of four neighbouring gates of a head.
fn gate_at(head: u32, quad: u32) -> vec4f {
  let at = head / N_HEADS * QKV_STRIDE + GATE_COLUMN + head % N_HEADS * HEAD_DIM;
  var gate: vec4f;
  for (var i = 0u; i < 4u; i++) { gate[i] = qkv[at + min(4u * quad + i, HEAD_DIM - 1u)]; }
  return 1.0 / (1.0 + exp(min(-gate, vec4f(87.0)))); // beyond 87 exp would overflow f32
}

fn key_at(loaded: Eight, column: u32, is_newest: bool) -> Eight {
  if (is_newest) { return newest[column]; }
  return loaded;
}
fn value_at(loaded: Eight, column: u32, is_newest: bool) -> Eight {
  if (is_newest) { return newest[D8 + column]; }
  return loaded;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(subgroup_id) subgroup: u32,
        @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_invocation_id) invocation: u32) {
  if (group.z >= single_rows()) { return; }
  attend(group.z, group.x, group.y, subgroup * subgroup_size + invocation, invocation);
}
