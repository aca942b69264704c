// The end of decode attention with subgroup operations: the workers' results become one a head. Those of a subgroup are
// reduced in registers, the subgroups' through workgroup memory, which takes one head at a time.
// Consts besides the core's: SUBGROUP, invocations that are certain to be of one subgroup (a multiple of
// INVOCATIONS_PER_KEY). The output fragment has put_quad(), which every invocation calls: it may work across
// invocations. The entry has HAS_GATE and gate_at(), or imports attention_no_gate.
//!import attention/attention_logit
//!import attention/attention_quad_y

const kParts = WORKGROUP / SUBGROUP;

var<workgroup> part_max: array<f32, HEADS * kParts>;
var<workgroup> part_sum: array<f32, HEADS * kParts>;
var<workgroup> gathered: array<vec4f, kParts * D8 * 2u>;

// Reduces every worker's results, relative to its own maxima, to its subgroup's, relative to the subgroup's maxima.
fn reduce_workers(highest: ptr<function, array<f32, OWN_HEADS>>, sum: ptr<function, array<f32, OWN_HEADS>>,
                low: ptr<function, array<vec4f, HEADS * VECTORS>>, high: ptr<function, array<vec4f, HEADS * VECTORS>>,
                thread: u32, invocation: u32) {
  let rank = thread % INVOCATIONS_PER_KEY;
  var factor: array<f32, OWN_HEADS>;
  for (var h = 0u; h < OWN_HEADS; h++) {
    var top = (*highest)[h];
    for (var distance = INVOCATIONS_PER_KEY; distance < SUBGROUP; distance <<= 1u) {
      top = max(top, subgroupShuffleXor(top, distance));
    }
    factor[h] = exp2((*highest)[h] - top);
    var total = (*sum)[h] * factor[h];
    for (var distance = SHARE * HEAD_PARTS; distance < SUBGROUP; distance <<= 1u) {
      total += subgroupShuffleXor(total, distance);
    }
    let part = thread / SUBGROUP;
    if (rank % SHARE == 0u && rank / SHARE < HEAD_PARTS && thread % SUBGROUP < INVOCATIONS_PER_KEY) {
      part_max[(rank / SHARE * OWN_HEADS + h) * kParts + part] = top;
      part_sum[(rank / SHARE * OWN_HEADS + h) * kParts + part] = total;
    }
  }
  if (SUBGROUP == INVOCATIONS_PER_KEY) { return; }
  for (var h = 0u; h < HEADS; h++) {
    let of_head = subgroupShuffle(factor[h % OWN_HEADS], invocation - rank + h / OWN_HEADS * SHARE);
    for (var i = h * VECTORS; i < (h + 1u) * VECTORS; i++) {
      (*low)[i] *= of_head;
      (*high)[i] *= of_head;
      for (var distance = INVOCATIONS_PER_KEY; distance < SUBGROUP; distance <<= 1u) {
        (*low)[i] += subgroupShuffleXor((*low)[i], distance);
        (*high)[i] += subgroupShuffleXor((*high)[i], distance);
      }
    }
  }
}

fn gather_head(h: u32, low: ptr<function, array<vec4f, HEADS * VECTORS>>,
               high: ptr<function, array<vec4f, HEADS * VECTORS>>, thread: u32) {
  let rank = thread % SUBGROUP;
  // Not low[h]: registers cannot be indexed by a variable without moving to memory.
  for (var i = 0u; i < HEADS * VECTORS; i++) {
    let column = rank + i % VECTORS * INVOCATIONS_PER_KEY;
    if (i / VECTORS == h && rank < INVOCATIONS_PER_KEY && column < D8) {
      let at = (thread / SUBGROUP * D8 + column) * 2u;
      gathered[at] = (*low)[i];
      gathered[at + 1u] = (*high)[i];
    }
  }
}

// The sums of the parts for four neighbouring values of a head.
struct Quad {
  weighted: vec4f,
  highest: f32,
  sum: f32,
}

fn head_quad(h: u32, quad: u32) -> Quad {
  var top = kLowest;
  for (var p = 0u; p < kParts; p++) { top = max(top, part_max[h * kParts + p]); }
  var reduced = Quad(vec4f(), top, 0.0);
  for (var p = 0u; p < kParts; p++) {
    let factor = exp2(part_max[h * kParts + p] - top);
    reduced.weighted += factor * gathered[p * D8 * 2u + min(quad, D8 * 2u - 1u)];
    reduced.sum += factor * part_sum[h * kParts + p];
  }
  return reduced;
}

// After the barrier.
fn put_head(split: u32, first_head: u32, h: u32, heads: u32, thread: u32) {
  for (var base = 0u; base < D8 * 2u; base += WORKGROUP) {
    let quad = base + thread;
    let head = first_head + min(h, heads - 1u);
    var found = head_quad(h, quad);
    if (HAS_GATE) { found.weighted *= gate_at(head, quad); } // of a split's part as well as of the whole
    put_quad(split, head, quad, found, h < heads && quad < D8 * 2u);
  }
}
