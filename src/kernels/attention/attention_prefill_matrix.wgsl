// Prefill attention on the matrix units: f16 inputs, f32 sums (fragments of 16 x 16 x 16), online softmax in tiles.
// One workgroup: rows of one head, the longest first. A pair of subgroups shares ROW_TILES fragments of rows: both hold
// their q; of logits each makes half the keys of a tile, of results half the dimensions. So a fragment of keys or
// values that a subgroup loads serves ROW_TILES products, and results take half the registers.
// A fragment's numbers cannot be touched one by one, so logits pass through workgroup memory on their way to
// probabilities, kLanes invocations a row; results stay where they are, because the maximum they are relative to is only
// raised when a row's logits exceed it by kSlack: then, rarely, they pass too.
// Workgroup memory, in elements of 16 bytes, which matrix loads take as well, so that invocations store 16 at once:
// `tile`, KEYS keys, then as many values, [key][dimension], zeros behind HEAD_DIM; `logits` and `probabilities`,
// [row][key]. Barriers: logits are complete, and no keys or values are needed any more; probabilities, values and the
// next keys are complete. What the cache holds is asked for right behind a barrier and stored before the next one: asked
// for a barrier earlier, it made the kernel 7 to 20 % slower.
// Needs a head_dim of whole fragments, at most 256 (above 128 with ROW_TILES of 1), and a cache in f16. Error: q and
// probabilities rounded to f16: relative L2 below 1e-3.
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
const PAIR_ROWS = 16u * ROW_TILES;
const ROWS = PAIR_ROWS * (SUBGROUPS / 2u);
const WORKGROUP = 32u * SUBGROUPS;
const kQuads = (HEAD_DIM + 63u) / 64u;  // four fragments each
const kEights = kQuads * 8u;
const kStride = kEights + 1u;  // 16 bytes more, so that rows begin in different banks
const kLogitStride = KEYS / 4u + 1u;
const kProbabilityStride = KEYS / 8u + 1u;
const kValues = KEYS * kStride;  // where they begin in `tile`
const kEach = KEYS * kEights / WORKGROUP;
const kLanes = WORKGROUP / ROWS;
const kOwnQuads = KEYS / 4u / kLanes;
const kFragmentLanes = 2u / ROW_TILES;  // invocations of a row of results on their way through `logits`
const kUnseen: f32 = -1e29;  // logits below are masked ones
const kSlack: f32 = 8.0;     // probabilities reach 2^8, far from the end of f16

var<workgroup> tile: array<vec4<u32>, 2u * KEYS * kStride>;
var<workgroup> logits: array<vec4<f32>, ROWS * kLogitStride>;
var<workgroup> probabilities: array<vec4<u32>, ROWS * kProbabilityStride>;
var<workgroup> factors: array<f32, ROWS>;      // of results
var<workgroup> raised: array<u32, SUBGROUPS>;  // whether a row's maximum was

// Position of a row; a row past the cache (it was not stored) sees what the last one sees.
fn position_of(run: Run, row: u32) -> u32 {
  return min(run.position + row - run.first_row, CTX_LEN - 1u);
}

fn q_eight(row: u32, head: u32, d8: u32) -> vec4<u32> {
  if (d8 >= D8) { return vec4<u32>(); }
  let at = ((row * N_HEADS + head) * D8 + d8) * 2u;
  let low = q[at] * Q_SCALE;
  let high = q[at + 1u] * Q_SCALE;
  return vec4<u32>(pack2x16float(low.xy), pack2x16float(low.zw), pack2x16float(high.xy), pack2x16float(high.zw));
}

fn load_query(at: u32) -> Left {
  return subgroupMatrixLoad<Left, row_major>(&tile, at, kStride);
}

fn load_keys(at: u32) -> Right {
  return subgroupMatrixLoad<Right, col_major>(&tile, at, kStride);
}

fn load_values(at: u32) -> Right {
  return subgroupMatrixLoad<Right, row_major>(&tile, kValues + at, kStride);
}

fn load_probabilities(at: u32) -> Left {
  return subgroupMatrixLoad<Left, row_major>(&probabilities, at, kProbabilityStride);
}

// Where a subgroup has its fragments in `logits`, and an invocation its part of one row of them.
struct Part {
  logits_at: u32,
  at: u32,
  row: u32,  // of the workgroup
  out: u32,  // of y
  is_there: bool,
  column: u32,  // of y, of the head's first fragment
}

// One below the other; the second only with two ROW_TILES.
fn store_sums(part: Part, upper: Sum, lower: Sum) {
  subgroupMatrixStore<row_major>(&logits, part.logits_at, upper, kLogitStride);
  if (ROW_TILES > 1u) {
    subgroupMatrixStore<row_major>(&logits, part.logits_at + 16u * kLogitStride, lower, kLogitStride);
  }
}

// Multiplies what the subgroup stored.
fn scale_stored(part: Part) {
  workgroupBarrier();
  for (var i = 0u; i < 2u * ROW_TILES; i++) { logits[part.at + i] *= factors[part.row]; }
  workgroupBarrier();
}

fn load_sum(part: Part, row_tile: u32) -> Sum {
  return subgroupMatrixLoad<Sum, row_major>(&logits, part.logits_at + row_tile * 16u * kLogitStride, kLogitStride);
}

fn write_sums(upper: Sum, lower: Sum, part: Part, head: u32, d: u32) {
  workgroupBarrier();
  store_sums(part, upper, lower);
  workgroupBarrier();
  for (var i = 0u; i < 2u * ROW_TILES; i++) {
    let values = logits[part.at + i] * factors[part.row];
    let column = part.column + d + i * 4u;
    if (part.is_there && column < HEAD_DIM) {
      if (HAS_F32) { result[((part.out * N_HEADS + head) * HEAD_DIM + column) / 4u] = values; }
      if (HAS_F16) { store_f16_quad(part.out, head * HEAD_DIM + column, values); }
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
  let pair_row = subgroup / 2u * PAIR_ROWS;
  let half = subgroup % 2u;

  // q through `tile`, KEYS rows at a time. With two ROW_TILES the lower fragments begin with q8.
  var q0: Left; var q1: Left; var q2: Left; var q3: Left;
  var q4: Left; var q5: Left; var q6: Left; var q7: Left;
  var q8: Left; var q9: Left; var q10: Left; var q11: Left;
  var q12: Left; var q13: Left; var q14: Left; var q15: Left;
  for (var first = 0u; first < ROWS; first += KEYS) {
    workgroupBarrier();
    for (var i = thread; i < KEYS * kEights; i += WORKGROUP) {
      let row = min(first_row + first + i / kEights, last_row);
      tile[i / kEights * kStride + i % kEights] = q_eight(row, head, i % kEights);
    }
    workgroupBarrier();
    if (pair_row >= first && pair_row < first + KEYS) {
      let at = (pair_row - first) * kStride;
      let second = at + select(16u, 16u * kStride, ROW_TILES > 1u);
      q0 = load_query(at + 0u);
      q1 = load_query(at + 2u);
      q2 = load_query(at + 4u);
      q3 = load_query(at + 6u);
      if (kQuads > 1u) {
        q4 = load_query(at + 8u);
        q5 = load_query(at + 10u);
        q6 = load_query(at + 12u);
        q7 = load_query(at + 14u);
      }
      if (kQuads > 2u || ROW_TILES > 1u) {
        q8 = load_query(second + 0u);
        q9 = load_query(second + 2u);
        q10 = load_query(second + 4u);
        q11 = load_query(second + 6u);
      }
      if (kQuads > 3u || (ROW_TILES > 1u && kQuads > 1u)) {
        q12 = load_query(second + 8u);
        q13 = load_query(second + 10u);
        q14 = load_query(second + 12u);
        q15 = load_query(second + 14u);
      }
    }
  }
  workgroupBarrier();

  var part: Part;
  part.row = pair_row + subgroup_invocation / kFragmentLanes;
  part.out = first_row + part.row;
  part.is_there = part.out <= last_row;
  part.logits_at = pair_row * kLogitStride + half * 4u;
  part.at = part.row * kLogitStride + half * 4u + subgroup_invocation % kFragmentLanes * 2u;
  part.column = half * kQuads * 32u + subgroup_invocation % kFragmentLanes * 8u;
  // Softmax: a row of the workgroup, and which of its keys.
  let own_row = thread / kLanes;
  let lane = thread % kLanes;
  let position = position_of(run, min(first_row + own_row, last_row));
  let own_logits = own_row * kLogitStride + lane * kOwnQuads;
  let own_probabilities = own_row * kProbabilityStride + lane * (kOwnQuads / 2u);
  var highest = kUnseen;
  var sum = 0.0;
  // With two ROW_TILES the lower fragments of results begin with y4.
  var y0: Sum; var y1: Sum; var y2: Sum; var y3: Sum;
  var y4: Sum; var y5: Sum; var y6: Sum; var y7: Sum;

  var values: array<vec4<u32>, kEach>;
  var next_keys: array<vec4<u32>, kEach>;
  for (var e = 0u; e < kEach; e++) {
    let i = thread + e * WORKGROUP;
    let key = min(begin + i / kEights, end - 1u);
    tile[i / kEights * kStride + i % kEights] = k_cache[cache_row(first_row, kv_head, key) * D8 + min(i % kEights, D8 - 1u)];
  }
  workgroupBarrier();
  for (var first_key = begin; first_key < end; first_key += KEYS) {
    var s0 = Sum();
    var s1 = Sum();
    let keys_at = half * 16u * kStride;
    let k0 = load_keys(keys_at + 0u);
    s0 = subgroupMatrixMultiplyAccumulate(q0, k0, s0);
    if (ROW_TILES > 1u) { s1 = subgroupMatrixMultiplyAccumulate(q8, k0, s1); }
    let k1 = load_keys(keys_at + 2u);
    s0 = subgroupMatrixMultiplyAccumulate(q1, k1, s0);
    if (ROW_TILES > 1u) { s1 = subgroupMatrixMultiplyAccumulate(q9, k1, s1); }
    let k2 = load_keys(keys_at + 4u);
    s0 = subgroupMatrixMultiplyAccumulate(q2, k2, s0);
    if (ROW_TILES > 1u) { s1 = subgroupMatrixMultiplyAccumulate(q10, k2, s1); }
    let k3 = load_keys(keys_at + 6u);
    s0 = subgroupMatrixMultiplyAccumulate(q3, k3, s0);
    if (ROW_TILES > 1u) { s1 = subgroupMatrixMultiplyAccumulate(q11, k3, s1); }
    if (kQuads > 1u) {
      let k4 = load_keys(keys_at + 8u);
      s0 = subgroupMatrixMultiplyAccumulate(q4, k4, s0);
      if (ROW_TILES > 1u) { s1 = subgroupMatrixMultiplyAccumulate(q12, k4, s1); }
      let k5 = load_keys(keys_at + 10u);
      s0 = subgroupMatrixMultiplyAccumulate(q5, k5, s0);
      if (ROW_TILES > 1u) { s1 = subgroupMatrixMultiplyAccumulate(q13, k5, s1); }
      let k6 = load_keys(keys_at + 12u);
      s0 = subgroupMatrixMultiplyAccumulate(q6, k6, s0);
      if (ROW_TILES > 1u) { s1 = subgroupMatrixMultiplyAccumulate(q14, k6, s1); }
      let k7 = load_keys(keys_at + 14u);
      s0 = subgroupMatrixMultiplyAccumulate(q7, k7, s0);
      if (ROW_TILES > 1u) { s1 = subgroupMatrixMultiplyAccumulate(q15, k7, s1); }
    }
    if (kQuads > 2u) {
      s0 = subgroupMatrixMultiplyAccumulate(q8, load_keys(keys_at + 16u), s0);
      s0 = subgroupMatrixMultiplyAccumulate(q9, load_keys(keys_at + 18u), s0);
      s0 = subgroupMatrixMultiplyAccumulate(q10, load_keys(keys_at + 20u), s0);
      s0 = subgroupMatrixMultiplyAccumulate(q11, load_keys(keys_at + 22u), s0);
    }
    if (kQuads > 3u) {
      s0 = subgroupMatrixMultiplyAccumulate(q12, load_keys(keys_at + 24u), s0);
      s0 = subgroupMatrixMultiplyAccumulate(q13, load_keys(keys_at + 26u), s0);
      s0 = subgroupMatrixMultiplyAccumulate(q14, load_keys(keys_at + 28u), s0);
      s0 = subgroupMatrixMultiplyAccumulate(q15, load_keys(keys_at + 30u), s0);
    }
    store_sums(part, s0, s1);
    workgroupBarrier();

    for (var e = 0u; e < kEach; e++) {
      let i = thread + e * WORKGROUP;
      let column = min(i % kEights, D8 - 1u);
      values[e] = v_cache[cache_row(first_row, kv_head, min(first_key + i / kEights, end - 1u)) * D8 + column];
      next_keys[e] = k_cache[cache_row(first_row, kv_head, min(first_key + KEYS + i / kEights, end - 1u)) * D8 + column];
    }
    var l: array<vec4<f32>, kOwnQuads>;
    for (var i = 0u; i < kOwnQuads; i++) {
      let x = logits[own_logits + i];
      l[i] = vec4<f32>(logit(x.x), logit(x.y), logit(x.z), logit(x.w));
    }
    if (first_key + KEYS > first_position + 1u || end - 1u - first_key >= WINDOW) {
      for (var i = 0u; i < kOwnQuads; i++) {
        let key = first_key + (lane * kOwnQuads + i) * 4u + vec4<u32>(0u, 1u, 2u, 3u);
        let seen = (key <= vec4<u32>(position)) & (vec4<u32>(position) - key < vec4<u32>(WINDOW));
        l[i] = select(vec4<f32>(kLowest), l[i], seen);
      }
    }
    var tops = l[0];
    for (var i = 1u; i < kOwnQuads; i++) { tops = max(tops, l[i]); }
    var top = max(max(tops.x, tops.y), max(tops.z, tops.w));
    for (var distance = 1u; distance < kLanes; distance <<= 1u) {
      top = max(top, subgroupShuffleXor(top, distance));
    }
    let is_raised = top > highest + kSlack;
    let factor = select(1.0, exp2(highest - top), is_raised);
    let any_passes = subgroupAny(is_raised && highest > kUnseen);
    highest = select(highest, top, is_raised);
    var added = vec4<f32>();
    for (var i = 0u; i < kOwnQuads; i += 2u) {
      let low = exp2(l[i] - highest);
      let high = exp2(l[i + 1u] - highest);
      added += low + high;
      probabilities[own_probabilities + i / 2u] = vec4<u32>(pack2x16float(low.xy), pack2x16float(low.zw),
                                                            pack2x16float(high.xy), pack2x16float(high.zw));
    }
    sum = sum * factor + (added.x + added.y) + (added.z + added.w);
    if (lane == 0u) { factors[own_row] = factor; }
    if (subgroup_invocation == 0u) { raised[subgroup] = u32(any_passes); }
    for (var e = 0u; e < kEach; e++) {
      let i = thread + e * WORKGROUP;
      let at = i / kEights * kStride + i % kEights;
      tile[kValues + at] = values[e];
      tile[at] = next_keys[e];
    }
    let all_raised = workgroupUniformLoad(&raised);  // a barrier, too
    var passes = 0u;
    for (var i = 0u; i < SUBGROUPS; i++) { passes += all_raised[i]; }
    if (passes != 0u) {
      store_sums(part, y0, y4);
      scale_stored(part);
      y0 = load_sum(part, 0u);
      if (ROW_TILES > 1u) { y4 = load_sum(part, 1u); }
      workgroupBarrier();
      store_sums(part, y1, y5);
      scale_stored(part);
      y1 = load_sum(part, 0u);
      if (ROW_TILES > 1u) { y5 = load_sum(part, 1u); }
      workgroupBarrier();
      if (kQuads > 1u) {
        store_sums(part, y2, y6);
        scale_stored(part);
        y2 = load_sum(part, 0u);
        if (ROW_TILES > 1u) { y6 = load_sum(part, 1u); }
        workgroupBarrier();
        store_sums(part, y3, y7);
        scale_stored(part);
        y3 = load_sum(part, 0u);
        if (ROW_TILES > 1u) { y7 = load_sum(part, 1u); }
        workgroupBarrier();
      }
      if (kQuads > 2u) {
        store_sums(part, y4, y4);
        scale_stored(part);
        y4 = load_sum(part, 0u);
        workgroupBarrier();
        store_sums(part, y5, y5);
        scale_stored(part);
        y5 = load_sum(part, 0u);
        workgroupBarrier();
      }
      if (kQuads > 3u) {
        store_sums(part, y6, y6);
        scale_stored(part);
        y6 = load_sum(part, 0u);
        workgroupBarrier();
        store_sums(part, y7, y7);
        scale_stored(part);
        y7 = load_sum(part, 0u);
        workgroupBarrier();
      }
    }
    for (var j = 0u; j < KEYS; j += 16u) {
      let p0 = load_probabilities(pair_row * kProbabilityStride + j / 8u);
      var p1: Left;
      if (ROW_TILES > 1u) { p1 = load_probabilities((pair_row + 16u) * kProbabilityStride + j / 8u); }
      let at = j * kStride + half * (kEights / 2u);
      let v0 = load_values(at + 0u);
      y0 = subgroupMatrixMultiplyAccumulate(p0, v0, y0);
      if (ROW_TILES > 1u) { y4 = subgroupMatrixMultiplyAccumulate(p1, v0, y4); }
      let v1 = load_values(at + 2u);
      y1 = subgroupMatrixMultiplyAccumulate(p0, v1, y1);
      if (ROW_TILES > 1u) { y5 = subgroupMatrixMultiplyAccumulate(p1, v1, y5); }
      if (kQuads > 1u) {
        let v2 = load_values(at + 4u);
        y2 = subgroupMatrixMultiplyAccumulate(p0, v2, y2);
        if (ROW_TILES > 1u) { y6 = subgroupMatrixMultiplyAccumulate(p1, v2, y6); }
        let v3 = load_values(at + 6u);
        y3 = subgroupMatrixMultiplyAccumulate(p0, v3, y3);
        if (ROW_TILES > 1u) { y7 = subgroupMatrixMultiplyAccumulate(p1, v3, y7); }
      }
      if (kQuads > 2u) {
        y4 = subgroupMatrixMultiplyAccumulate(p0, load_values(at + 8u), y4);
        y5 = subgroupMatrixMultiplyAccumulate(p0, load_values(at + 10u), y5);
      }
      if (kQuads > 3u) {
        y6 = subgroupMatrixMultiplyAccumulate(p0, load_values(at + 12u), y6);
        y7 = subgroupMatrixMultiplyAccumulate(p0, load_values(at + 14u), y7);
      }
    }
  }

  for (var distance = 1u; distance < kLanes; distance <<= 1u) { sum += subgroupShuffleXor(sum, distance); }
  if (lane == 0u) { factors[own_row] = normalise(head, 1.0, highest, sum); }
  write_sums(y0, y4, part, head, 0u);
  write_sums(y1, y5, part, head, 16u);
  if (kQuads > 1u) {
    write_sums(y2, y6, part, head, 32u);
    write_sums(y3, y7, part, head, 48u);
  }
  if (kQuads > 2u) {
    write_sums(y4, y4, part, head, 64u);
    write_sums(y5, y5, part, head, 80u);
  }
  if (kQuads > 3u) {
    write_sums(y6, y6, part, head, 96u);
    write_sums(y7, y7, part, head, 112u);
  }
}
