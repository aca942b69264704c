// Decode attention without optional features; with WORKGROUP = 8 also the shape for CPU devices. One workgroup: HEADS
// query heads that share a kv head, of one row of q (z of the grid), one split of the keys. It walks over tiles of TILE
// keys:
//   1. logits: an invocation takes whole keys, KEYS_EACH at once, so that no sum crosses invocations and the values of
//      q
//      that it reads serve several keys;
//   2. softmax: a team of TEAM invocations per head finds the tile's maximum and sum;
//   3. values: an invocation takes VECTORS times eight dimensions and every KEY_GROUPS-th key.
// Barriers: tile_p and team_max after 1 and 2, team_sum and rescale before 3, tile_p free again after 3.
// Error: f32 sums in the order of the keys, relative L2 below 1e-5.
//!import attention/attention_cache_f16
//!import attention/attention_decode_range
//!import attention/attention_output_y
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> k_cache: array<Eight>;
@group(0) @binding(3) var<storage, read> v_cache: array<Eight>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) var<storage, read_write> result: array<f32>;
@group(0) @binding(6) var<storage, read_write> y_q8: array<u32>;

const kTeam = WORKGROUP / HEADS_POW2;

var<workgroup> tile_q: array<vec4f, HEADS * D8 * 2u>;
var<workgroup> tile_p: array<f32, HEADS * TILE>;
var<workgroup> team_max: array<f32, WORKGROUP>;
var<workgroup> team_sum: array<f32, WORKGROUP>;
var<workgroup> rescale: array<f32, HEADS_POW2>;
var<workgroup> head_max: array<f32, HEADS_POW2>;
var<workgroup> head_sum: array<f32, HEADS_POW2>;
var<workgroup> gathered: array<vec4f, KEY_GROUPS * D8 * 2u>;

fn q_at(head: u32, d: u32) -> f32 {
  if (d >= HEAD_DIM) {
    return 0.0;
  }
  return q[head * HEAD_DIM + d] * Q_SCALE;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  if (group.z >= single_rows()) { return; }
  let split = group.y;
  let keys = keys_of_row(group.z);
  let share = keys_per_split(keys);
  let begin = keys.begin + split * share;
  if (begin >= keys.end) {
    return;
  }
  let end = min(begin + share, keys.end);

  let kv_head = group.x / HEAD_CHUNKS;
  let first_in_group = group.x % HEAD_CHUNKS * HEADS;
  let heads = min(HEADS, GROUP - first_in_group);
  let first_head = group.z * N_HEADS + kv_head * GROUP + first_in_group;

  for (var i = thread; i < HEADS * D8 * 2u; i += WORKGROUP) {
    let head = first_head + min(i / (D8 * 2u), heads - 1u);
    let d = i % (D8 * 2u) * 4u;
    tile_q[i] = vec4f(q_at(head, d), q_at(head, d + 1u), q_at(head, d + 2u), q_at(head, d + 3u));
  }
  workgroupBarrier();

  let team = thread / kTeam;  // the head whose softmax this invocation helps with
  let member = thread % kTeam;
  var highest = kLowest;
  var sum = 0.0;
  let key_group = thread / INVOCATIONS_PER_KEY;
  let rank = thread % INVOCATIONS_PER_KEY;
  var low: array<vec4f, HEADS * VECTORS>;
  var high: array<vec4f, HEADS * VECTORS>;
  for (var i = 0u; i < HEADS * VECTORS; i++) {
    low[i] = vec4f();
    high[i] = vec4f();
  }

  for (var tile = begin; tile < end; tile += TILE) {
    let count = min(TILE, end - tile);
    for (var first = thread; first < count; first += WORKGROUP * KEYS_EACH) {
      var s: array<f32, HEADS * KEYS_EACH>;
      for (var i = 0u; i < HEADS * KEYS_EACH; i++) {
        s[i] = 0.0;
      }
      var at_key: array<u32, KEYS_EACH>;
      for (var e = 0u; e < KEYS_EACH; e++) {
        at_key[e] = cache_row(group.z, kv_head, tile + min(first + e * WORKGROUP, count - 1u)) * D8;
      }
      for (var v = 0u; v < D8; v++) {
        for (var e = 0u; e < KEYS_EACH; e++) {
          let eight = k_cache[at_key[e] + v];
          let k_low = low4(eight);
          let k_high = high4(eight);
          for (var h = 0u; h < HEADS; h++) {
            let at = (h * D8 + v) * 2u;
            s[h * KEYS_EACH + e] += dot(k_low, tile_q[at]) + dot(k_high, tile_q[at + 1u]);
          }
        }
      }
      for (var e = 0u; e < KEYS_EACH; e++) {
        if (first + e * WORKGROUP < count) {
          for (var h = 0u; h < HEADS; h++) {
            tile_p[h * TILE + first + e * WORKGROUP] = logit(s[h * KEYS_EACH + e]);
          }
        }
      }
    }
    workgroupBarrier();

    var local_max = kLowest;
    if (team < HEADS) {
      for (var key = member; key < count; key += kTeam) {
        local_max = max(local_max, tile_p[team * TILE + key]);
      }
    }
    team_max[thread] = local_max;
    workgroupBarrier();
    let before = highest;
    for (var i = 0u; i < kTeam; i++) {
      highest = max(highest, team_max[team * kTeam + i]);
    }
    var local_sum = 0.0;
    if (team < HEADS) {
      for (var key = member; key < count; key += kTeam) {
        let p = exp2(tile_p[team * TILE + key] - highest);
        tile_p[team * TILE + key] = p;
        local_sum += p;
      }
    }
    sum = sum * exp2(before - highest) + local_sum;
    if (member == 0u) {
      rescale[team] = exp2(before - highest);
    }
    workgroupBarrier();

    if (key_group < KEY_GROUPS) {
      for (var h = 0u; h < HEADS; h++) {
        for (var v = 0u; v < VECTORS; v++) {
          low[h * VECTORS + v] *= rescale[h];
          high[h * VECTORS + v] *= rescale[h];
        }
      }
      for (var key = key_group; key < count; key += KEY_GROUPS) {
        let row = cache_row(group.z, kv_head, tile + key) * D8;
        for (var v = 0u; v < VECTORS; v++) {
          let eight = v_cache[row + min(rank + v * INVOCATIONS_PER_KEY, D8 - 1u)];
          let v_low = low4(eight);
          let v_high = high4(eight);
          for (var h = 0u; h < HEADS; h++) {
            let p = tile_p[h * TILE + key];
            low[h * VECTORS + v] += p * v_low;
            high[h * VECTORS + v] += p * v_high;
          }
        }
      }
    }
    workgroupBarrier();
  }

  team_sum[thread] = sum;
  workgroupBarrier();
  if (member == 0u) {
    var total = 0.0;
    for (var i = 0u; i < kTeam; i++) {
      total += team_sum[thread + i];
    }
    head_max[team] = highest;
    head_sum[team] = total;
  }
  for (var h = 0u; h < heads; h++) {
    // Not low[h]: registers cannot be indexed by a variable without moving to memory.
    for (var i = 0u; i < HEADS * VECTORS; i++) {
      let column = rank + i % VECTORS * INVOCATIONS_PER_KEY;
      if (i / VECTORS == h && key_group < KEY_GROUPS && column < D8) {
        gathered[(key_group * D8 + column) * 2u] = low[i];
        gathered[(key_group * D8 + column) * 2u + 1u] = high[i];
      }
    }
    workgroupBarrier();
    for (var d4 = thread; d4 < D8 * 2u; d4 += WORKGROUP) {
      var weighted = vec4f();
      for (var g = 0u; g < KEY_GROUPS; g++) {
        weighted += gathered[g * D8 * 2u + d4];
      }
      for (var i = 0u; i < 4u; i++) {
        if (d4 * 4u + i < HEAD_DIM) {
          put(split, first_head, h, d4 * 4u + i, weighted[i], head_max[h], head_sum[h]);
        }
      }
    }
    workgroupBarrier();
  }
  finish(thread, first_head, heads);
}
