// Prefill attention on the matrix units: f16 inputs, f32 sums (fragments of 16 x 16 x 16), online softmax in tiles.
// One workgroup: rows of one head, the longest first. A pair of subgroups shares ROW_TILES fragments of rows, and both
// hold their q. Each makes the logits of half the keys of a tile, and half the dimensions of the results. So a fragment
// of keys or values that a subgroup loads serves ROW_TILES products, and results take half the registers.
// A fragment's numbers cannot be touched one by one, so logits pass through workgroup memory on their way to
// probabilities, kLanes invocations a row. Results stay in registers, because their maximum is only raised when a row's
// logits exceed it by kSlack. This is rare, and results pass through workgroup memory then.
// Workgroup memory, in elements of 16 bytes, which matrix loads take as well, so that invocations store 16 at once:
// `tile`, KEYS keys, then as many values, [key][dimension], zeros after HEAD_DIM; `logits` and `probabilities`,
// [row][key]. Barriers: logits are complete, and no keys or values are needed any more; probabilities, values and the
// next keys are complete. Loads from the cache begin right after a barrier, and their values are stored before the next
// one. Loads that began a barrier earlier made the kernel 7 to 20 % slower.
// Needs a head_dim of whole elements, at most 256 (above 128 with ROW_TILES of 1), and a cache in f16. Error: q and
// probabilities rounded to f16: relative L2 below 1e-3.
// Read next: attention_prefill.wgsl (the twin), common/fragments.
//!import attention/attention_one_run
//!import attention/attention_span
//!import common/fragments
//!import common/f16_store
//!import attention/attention_normalise
//!note Four fragments of q from `from` on.
//!block load_q first from
//!repeat i = 0 to 3
q$(first + i) = load_query($(from) + $(2 * (first + i) % 16)u);
//!end
//!end
//!note Logits of four fragments of dimensions, of one and of two fragments of rows.
//!block multiply_keys first
//!repeat i = 0 to 3
s0 = subgroupMatrixMultiplyAccumulate(q$(first + i), load_keys(keys_at + $(2 * (first + i))u), s0);
//!end
//!end
//!block multiply_shared_keys first
//!repeat i = 0 to 3
let k$(first + i) = load_keys(keys_at + $(2 * (first + i))u);
s0 = subgroupMatrixMultiplyAccumulate(q$(first + i), k$(first + i), s0);
if (ROW_TILES > 1u) { s1 = subgroupMatrixMultiplyAccumulate(q$(first + i + 8), k$(first + i), s1); }
//!end
//!end
//!note Results of two fragments of dimensions rescaled, of one and of two fragments of rows.
//!block rescale first
//!repeat i = 0, 1
store_sums(part, y$(first + i), y$(first + i));
scale_stored(part);
y$(first + i) = load_sum(part, 0u);
workgroupBarrier();
//!end
//!end
//!block rescale_shared first
//!repeat i = 0, 1
store_sums(part, y$(first + i), y$(first + i + 4));
scale_stored(part);
y$(first + i) = load_sum(part, 0u);
if (ROW_TILES > 1u) { y$(first + i + 4) = load_sum(part, 1u); }
workgroupBarrier();
//!end
//!end
//!note Results of two fragments of dimensions, likewise.
//!block multiply_values first
//!repeat i = 0, 1
y$(first + i) = subgroupMatrixMultiplyAccumulate(p0, load_values(at + $(2 * (first + i))u), y$(first + i));
//!end
//!end
//!block multiply_shared_values first
//!repeat i = 0, 1
let v$(first + i) = load_values(at + $(2 * (first + i))u);
y$(first + i) = subgroupMatrixMultiplyAccumulate(p0, v$(first + i), y$(first + i));
if (ROW_TILES > 1u) { y$(first + i + 4) = subgroupMatrixMultiplyAccumulate(p1, v$(first + i), y$(first + i + 4)); }
//!end
//!end
//!block write first lower
//!repeat i = 0, 1
write_sums(y$(first + i), y$(first + i + lower), part, head, $(16 * (first + i))u);
//!end
//!end
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

// The place of a subgroup's fragments in `logits`, and an invocation's part of one row there.
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
  let end_row = min(first_row + ROWS - 1u, last_row);
  let end = last_key_of(run, end_row) + 1u;
  let begin = first_key_of(run, first_row) / KEYS * KEYS;
  // Keys that all rows see.
  let all_from = first_key_of(run, end_row);
  let all_end = last_key_of(run, first_row) + 1u;
  let pair_row = subgroup / 2u * PAIR_ROWS;
  let half = subgroup % 2u;

  // q through `tile`, KEYS rows at a time. With two ROW_TILES the lower fragments begin with q8.
//!repeat i = 0, 4, 8, 12
  var q$(i): Left; var q$(i + 1): Left; var q$(i + 2): Left; var q$(i + 3): Left;
//!end
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
      //!use load_q 0 at
      if (kQuads > 1u) {
        //!use load_q 4 at
      }
      if (kQuads > 2u || ROW_TILES > 1u) {
        //!use load_q 8 second
      }
      if (kQuads > 3u || (ROW_TILES > 1u && kQuads > 1u)) {
        //!use load_q 12 second
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
  let own_first = first_key_of(run, min(first_row + own_row, last_row));
  let own_last = last_key_of(run, min(first_row + own_row, last_row));
  let own_logits = own_row * kLogitStride + lane * kOwnQuads;
  let own_probabilities = own_row * kProbabilityStride + lane * (kOwnQuads / 2u);
  var highest = kUnseen;
  var sum = 0.0;
  // The lower fragments of results, if ROW_TILES is 2, begin at y4.
//!repeat i = 0, 4
  var y$(i): Sum; var y$(i + 1): Sum; var y$(i + 2): Sum; var y$(i + 3): Sum;
//!end

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
    //!use multiply_shared_keys 0
    if (kQuads > 1u) {
      //!use multiply_shared_keys 4
    }
//!repeat quad = 2, 3
    if (kQuads > $(quad)u) {
      //!use multiply_keys $(4 * quad)
    }
//!end
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
    if (first_key + KEYS > all_end || first_key < all_from) {
      for (var i = 0u; i < kOwnQuads; i++) {
        let key = first_key + (lane * kOwnQuads + i) * 4u + vec4<u32>(0u, 1u, 2u, 3u);
        let seen = (key <= vec4<u32>(own_last)) & (key >= vec4<u32>(own_first));
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
      //!use rescale_shared 0
      if (kQuads > 1u) {
        //!use rescale_shared 2
      }
//!repeat quad = 2, 3
      if (kQuads > $(quad)u) {
        //!use rescale $(2 * quad)
      }
//!end
    }
    for (var j = 0u; j < KEYS; j += 16u) {
      let p0 = load_probabilities(pair_row * kProbabilityStride + j / 8u);
      var p1: Left;
      if (ROW_TILES > 1u) { p1 = load_probabilities((pair_row + 16u) * kProbabilityStride + j / 8u); }
      let at = j * kStride + half * (kEights / 2u);
      //!use multiply_shared_values 0
      if (kQuads > 1u) {
        //!use multiply_shared_values 2
      }
//!repeat quad = 2, 3
      if (kQuads > $(quad)u) {
        //!use multiply_values $(2 * quad)
      }
//!end
    }
  }

  for (var distance = 1u; distance < kLanes; distance <<= 1u) { sum += subgroupShuffleXor(sum, distance); }
  if (lane == 0u) { factors[own_row] = normalise(head, 1.0, highest, sum); }
  //!use write 0 4
  if (kQuads > 1u) {
    //!use write 2 4
  }
//!repeat quad = 2, 3
  if (kQuads > $(quad)u) {
    //!use write $(2 * quad) 0
  }
//!end
}
