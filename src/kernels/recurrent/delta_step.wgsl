// Convolution, gated delta rule and gated norm of one row of each run (causal_conv.h, scan.h, gated_norm.h), or of the
// up to ROWS rows of the one run of a drafting step, with the state in registers in between.
// One workgroup makes the value heads of one key head (x of the grid) of one run (y), one after another: only it reads
// and writes the states of its channels and heads. An invocation has four columns of a head's state and one of SPLITS
// parts of the keys. Shared: queries, keys and values after the convolution, partial products of state and key and of
// state and query, additions to the state, and outputs before the norm. Error: relative L2 < 1e-5.
//!import recurrent/runs_one
//!import recurrent/causal_conv_output
//!import recurrent/scan_step
//!import common/q8_store
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> x: array<f32>; // rows of X_STRIDE: queries, keys and values from X_COLUMN on
@group(0) @binding(2) var<storage, read> gates: array<f32>; // rows of GATES_STRIDE: a, b and z of each head
@group(0) @binding(3) var<storage, read> weight: array<f32>; // [CHANNELS, KERNEL]
@group(0) @binding(4) var<storage, read_write> kept: array<f32>; // [slots, KERNEL - 1, CHANNELS]
@group(0) @binding(5) var<storage, read> vectors: array<f32>;
@group(0) @binding(6) var<storage, read_write> heads: array<vec4f>; // [slots, HEADS, KEY_DIM, VALUE_DIM]
@group(0) @binding(7) var<storage, read> norm_weight: array<vec4f>; // [VALUE_DIM]
@group(0) @binding(8) var<storage, read_write> y: array<vec4f>; // [rows, HEADS * VALUE_DIM]
@group(0) @binding(9) var<storage, read_write> y_q8: array<u32>;

const kQuads = VALUE_DIM / 4u; // of the columns of a head
const kPart = (KEY_DIM + SPLITS - 1u) / SPLITS; // keys of an invocation
const kKeys = kPart * SPLITS; // padded by zeros
const kHeadsOfKey = HEADS / KEY_HEADS;
const kInputs = 2u * kKeys + kHeadsOfKey * VALUE_DIM;

var<workgroup> inputs: array<f32, ROWS * kInputs>; // queries, keys, values of each row
var<workgroup> knowns: array<vec4f, WORKGROUP>;
var<workgroup> answers: array<vec4f, WORKGROUP>;
var<workgroup> lengths: array<vec3f, SPLITS>; // of keys, of queries, and key . query
var<workgroup> added: array<vec4f, kQuads>;
var<workgroup> outputs: array<vec4f, kQuads>;
var<workgroup> decay: f32;

fn head_of(key_head: u32, i: u32) -> u32 {
  return select(key_head * kHeadsOfKey + i, i * KEY_HEADS + key_head, IS_TILED);
}

// The channel of an input; CHANNELS: a zero after the last key.
fn channel_of(key_head: u32, i: u32) -> u32 {
  if (i >= 2u * kKeys) {
    let value = i - 2u * kKeys;
    return 2u * KEY_HEADS * KEY_DIM + head_of(key_head, value / VALUE_DIM) * VALUE_DIM + value % VALUE_DIM;
  }
  if (i % kKeys >= KEY_DIM) {
    return CHANNELS;
  }
  return (i / kKeys * KEY_HEADS + key_head) * KEY_DIM + i % kKeys;
}

// Rows that are walked: with one, also a row past the step's last, which moves no state on.
fn rows_of(run: Run) -> u32 {
  if (ROWS == 1u) {
    return 1u;
  }
  return min(run.rows, ROWS);
}

// A channel after the convolution, and its kept inputs after each row. All loads, slot 0's too, come before the first
// store. Sums in the order of output_at.
fn make_input_rows(run: Run, rows: u32, channel: u32, i: u32) {
  var window: array<f32, kKept + ROWS>; // earlier inputs, then the rows'
  for (var back = kKept; back > 0u; back--) {
    window[kKept - back] = earlier_input(run, 0u, back, channel);
  }
  for (var r = 0u; r < ROWS; r++) { // constant bounds, so that the window is in registers
    if (r < rows) {
      window[kKept + r] = input_at(run.first + r, channel);
    }
  }
  for (var r = 0u; r < ROWS; r++) {
    if (r >= rows) {
      break;
    }
    var sum = 0.0;
    for (var j = 0u; j < KERNEL; j++) {
      sum += weight[channel * KERNEL + j] * window[r + j];
    }
    inputs[r * kInputs + i] = activate(sum);
    for (var j = 0u; run.advances && j < kKept; j++) {
      kept[kept_at(run.slot + r, j, channel)] = window[r + 1u + j];
    }
  }
}

fn make_inputs(run: Run, rows: u32, key_head: u32, t: u32) {
  for (var i = t; i < kInputs; i += WORKGROUP) {
    let channel = channel_of(key_head, i);
    if (ROWS == 1u) {
      var value = 0.0;
      if (channel < CHANNELS) {
        value = output_at(run, run.first, channel);
      }
      inputs[i] = value;
    } else if (channel < CHANNELS) {
      make_input_rows(run, rows, channel, i);
    } else {
      for (var r = 0u; r < rows; r++) {
        inputs[r * kInputs + i] = 0.0;
      }
    }
  }
}

// The addition to four columns of the state, and their answers: from the sums of all parts.
fn finish_columns(row: u32, head: u32, value_at: u32, quad: u32) {
  var known = vec4f();
  var answer = vec4f();
  var squares = vec3f();
  for (var i = 0u; i < SPLITS; i++) {
    known += knowns[i * kQuads + quad];
    answer += answers[i * kQuads + quad];
    squares += lengths[i];
  }
  let step = step_of(row, head, squares.x, squares.y);
  var joins = vec4f();
  for (var j = 0u; j < 4u; j++) {
    joins[j] = addition(inputs[value_at + quad * 4u + j], step.decay * step.key_scale * known[j], step.rate);
  }
  joins *= step.key_scale;
  added[quad] = joins;
  outputs[quad] = step.query_scale * (step.decay * answer + joins * squares.z);
  if (quad == 0u) {
    decay = step.decay;
  }
}

fn normed_at(row: u32, head: u32, quad: u32) -> vec4f {
  var squares = 0.0;
  for (var i = 0u; i < kQuads; i++) {
    squares += dot(outputs[i], outputs[i]);
  }
  var values = outputs[quad] * inverseSqrt(squares / f32(VALUE_DIM) + EPS) * norm_weight[quad];
  for (var j = 0u; j < 4u; j++) {
    let z = gates[row * GATES_STRIDE + OUTPUT_COLUMN + head * VALUE_DIM + quad * 4u + j];
    values[j] *= z * sigmoid(z);
  }
  return values;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let run = run_of_row(group.y);
  let rows = rows_of(run);
  let quad = t % kQuads;
  let first_key = t / kQuads * kPart;
  let has_state = run.advances && run.position != 0u;
  for (var i = 0u; i < kHeadsOfKey; i++) {
    let head = head_of(group.x, i);
    let from_first = ((run.from_slot * HEADS + head) * KEY_DIM + first_key) * kQuads + quad;
    var s: array<vec4f, kPart>;
    for (var j = 0u; j < kPart; j++) {
      s[j] = vec4f();
      if (has_state && first_key + j < KEY_DIM) {
        s[j] = heads[from_first + j * kQuads];
      }
    }
    if (i == 0u) {
      make_inputs(run, rows, group.x, t);
    }
    workgroupBarrier(); // inputs; outputs of the head before are read
    for (var r = 0u; r < rows; r++) {
      let row = run.first + r;
      let queries = r * kInputs + first_key;
      let keys = queries + kKeys;
      var known = vec4f();
      var answer = vec4f();
      var squares = vec3f();
      for (var j = 0u; j < kPart; j++) {
        let query = inputs[queries + j];
        let key = inputs[keys + j];
        known += s[j] * key;
        answer += s[j] * query;
        squares += vec3f(key * key, query * query, key * query);
      }
      knowns[t] = known;
      answers[t] = answer;
      if (quad == 0u) {
        lengths[t / kQuads] = squares;
      }
      workgroupBarrier(); // knowns, answers, lengths; outputs of the row before are read
      if (t < kQuads) {
        finish_columns(row, head, r * kInputs + 2u * kKeys + i * VALUE_DIM, t);
      }
      workgroupBarrier(); // added, outputs, decay
      let joins = added[quad];
      let first = (((run.slot + r) * HEADS + head) * KEY_DIM + first_key) * kQuads + quad;
      for (var j = 0u; j < kPart; j++) {
        if (run.advances && first_key + j < KEY_DIM) {
          let behind = decay * s[j] + joins * inputs[keys + j];
          heads[first + j * kQuads] = behind;
          if (ROWS > 1u) {
            s[j] = behind;
          }
        }
      }
      var values = vec4f();
      let at = (row * HEADS + head) * kQuads + quad;
      if (t < kQuads) {
        values = normed_at(row, head, quad);
        if (HAS_F32) { y[at] = values; }
      }
      if (HAS_Q8) {
        store_q8(t, at, values, t < kQuads);
      }
    }
  }
}
