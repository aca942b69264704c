// The split-K reduction of one query head (layout: attention_output_partial).
// One workgroup: one query head of one row of q (y of the grid). QUADS invocations have four columns each; PARTS
// invocations share a quad, each has every PARTS-th split. All loads of an invocation are on the way at once: no load
// decides which comes next. Splits without keys are read too, since the buffer holds them, and dropped.
// Barrier: between the parts, each relative to its own maximum, and the first QUADS invocations, which reduce them. For
// 8-bit blocks (common/forms.h; HAS_Q8 wants a head_dim that is a multiple of 32) each such invocation makes all four
// quads of its block and writes one: cheaper than a second barrier. HAS_F16: y is only f16 in tiles, bound as y_q8, and
// head_dim a multiple of 16.
// Error: f32 sums. Read next: attention_decode_range, which decides which splits have keys.
//!import attention/attention_decode_range
//!import attention/attention_normalise
//!import common/q8_block
//!import common/f16_quad
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> partials: array<vec4f>;
@group(0) @binding(2) var<storage, read> sinks: array<f32>;
@group(0) @binding(3) var<storage, read_write> result: array<f32>;
@group(0) @binding(4) var<storage, read_write> y_q8: array<u32>;

const QUADS = 2u * D8;
const EACH = (SPLITS + PARTS - 1u) / PARTS;
const kPairs = SPLITS * ALL_HEADS * QUADS;  // the first vec4 of (highest, sum) pairs

var<workgroup> part_weighted: array<vec4f, PARTS * QUADS>;
var<workgroup> part_pairs: array<vec2f, PARTS>;

// The row of an invocation's e-th split; past the last split it is the last one's, which is then dropped.
fn partial_row(e: u32, part: u32, head: u32) -> u32 { return min(e * PARTS + part, SPLITS - 1u) * ALL_HEADS + head; }

@compute @workgroup_size(PARTS * QUADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  if (group.y >= single_rows()) { return; }
  let head = group.y * N_HEADS + group.x;
  let part = thread / QUADS;
  let quad = thread % QUADS;
  var loaded: array<vec4f, EACH>;
  var beside: array<vec4f, EACH>;  // two pairs
  for (var e = 0u; e < EACH; e++) {
    let row = partial_row(e, part, head);
    loaded[e] = partials[row * QUADS + quad];
    beside[e] = partials[kPairs + row / 2u];
  }
  let sink = sink_of(head);
  let keys = keys_of_row(group.y);
  let share = keys_per_split(keys);

  var pairs: array<vec2f, EACH>;
  var highest = kLowest;
  for (var e = 0u; e < EACH; e++) {
    let pair = select(beside[e].xy, beside[e].zw, partial_row(e, part, head) % 2u == 1u);
    let has_keys = (e * PARTS + part) * share < keys.end - keys.begin;
    pairs[e] = select(vec2f(kLowest, 0.0), pair, has_keys);
    loaded[e] = select(vec4f(), loaded[e], has_keys);
    highest = max(highest, pairs[e].x);
  }
  var weighted = vec4f();
  var sum = 0.0;
  for (var e = 0u; e < EACH; e++) {
    let factor = exp2(pairs[e].x - highest);
    weighted += factor * loaded[e];
    sum += factor * pairs[e].y;
  }
  part_weighted[thread] = weighted;
  if (quad == 0u) { part_pairs[part] = vec2f(highest, sum); }
  workgroupBarrier();
  if (part != 0u) { return; }

  for (var p = 1u; p < PARTS; p++) { highest = max(highest, part_pairs[p].x); }
  var factors: array<f32, PARTS>;
  sum = 0.0;
  for (var p = 0u; p < PARTS; p++) {
    factors[p] = exp2(part_pairs[p].x - highest);
    sum += factors[p] * part_pairs[p].y;
  }
  let normaliser = normalise_with(sink, 1.0, highest, sum);
  for (var p = 0u; p < PARTS; p++) { factors[p] *= normaliser; }
  if (HAS_Q8) {
    put_of_block(head, quad, factors);
  } else if (HAS_F16) {
    put_f16(group.y, group.x * HEAD_DIM + 4u * quad, reduced(quad, factors));
  } else {
    put(head, quad, reduced(quad, factors));
  }
}

fn reduced(quad: u32, factors: array<f32, PARTS>) -> vec4f {
  var value = vec4f();
  for (var p = 0u; p < PARTS; p++) { value += factors[p] * part_weighted[p * QUADS + quad]; }
  return value;
}

fn put(head: u32, quad: u32, value: vec4f) {
  for (var i = 0u; i < 4u; i++) {
    let d = 4u * quad + i;
    if (d < HEAD_DIM) { result[head * HEAD_DIM + d] = value[i]; }
  }
}

fn put_f16(row: u32, column: u32, value: vec4f) {
  let words = f16_quad(value);
  let at = 2u * f16_quad_at(row, column);
  y_q8[at] = words.x;
  y_q8[at + 1u] = words.y;
}

fn put_of_block(head: u32, quad: u32, factors: array<f32, PARTS>) {
  let own = quad % 4u;
  var values: array<vec4f, 4>;
  var magnitudes = vec4f();
  for (var i = 0u; i < 4u; i++) {
    values[i] = reduced(quad - own + i, factors);
    magnitudes = max(magnitudes, abs(values[i]));
  }
  let largest = max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
  var sums = vec4i();
  var value: vec4f;
  var bytes: vec4i;
  for (var i = 0u; i < 4u; i++) {
    let q = q8_quantise(values[i], largest);
    sums += q;
    value = select(value, values[i], i == own);
    bytes = select(bytes, q, i == own);
  }
  put(head, quad, value);
  let word = head * HEAD_DIM / 4u + quad;
  y_q8[word] = q8_word(bytes);
  if (own == 0u) {
    let d = largest / 127.0;
    let at = Q8_PLANE1 + word / 4u * 2u;
    y_q8[at] = bitcast<u32>(d);
    y_q8[at + 1u] = bitcast<u32>(d * f32(sums.x + sums.y + sums.z + sums.w));
  }
}
