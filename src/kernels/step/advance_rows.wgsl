// The end of a step of many sequences. One workgroup in all, an invocation for each row that chose a token. Shared: the
// token of each slot, and which rows go on. Contract: advance.h, whose numbers the comments give.
//!import common/step_tables
//!import step/step_records
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read> token: array<u32>;
@group(0) @binding(2) var<storage, read_write> ring: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;
@group(0) @binding(4) var<storage, read_write> recent: array<u32>;
@group(0) @binding(5) var<storage, read_write> tokens: array<u32>;

const kNoToken = 0xFFFFFFFFu;
const kStopToken = 1u;
const kTokenLimit = 2u;
const kContextFull = 3u;

var<workgroup> chosen: array<u32, TABLE_SEQUENCES>;
var<workgroup> runs: array<u32, WORKGROUP>;

fn is_stop_token(record: u32, t: u32) -> bool {
  if (state.tables[record + kRecordIgnoreStop] != 0u) {
    return false;
  }
  for (var i = 0u; i < min(state.tables[record + kRecordStopTokenCount], MAX_STOP_TOKENS); i++) {
    if (state.tables[record + kRecordStopTokens + i] == t) {
      return true;
    }
  }
  return false;
}

fn count_token(slot: u32, pos: u32, t: u32) { // 2
  let first = slot * VOCAB_SIZE;
  let place = slot * PENALTY_RING + pos % PENALTY_RING;
  let oldest = recent[place];
  if (oldest < VOCAB_SIZE) {
    let count = counts[first + oldest];
    counts[first + oldest] = select(count - 1u, 0u, count == 0u);
  }
  recent[place] = t;
  if (t < VOCAB_SIZE) {
    counts[first + t] += 1u;
  }
}

// Returns the stop reason.
fn move_on(record: u32, pos: u32, t: u32) -> u32 {
  let generated = state.tables[record + kRecordGenerated] + 1u;
  state.tables[record + kRecordPos] = pos; // 1
  state.tables[record + kRecordGenerated] = generated;
  state.tables[record + kRecordToken] = t;
  var reason = kRunning; // 3
  if (is_stop_token(record, t)) {
    reason = kStopToken;
  } else if (generated >= state.tables[record + kRecordMaxGenerated]) {
    reason = kTokenLimit;
  } else if (pos >= state.tables[record + kRecordContext]) {
    reason = kContextFull;
  }
  state.tables[record + kRecordStopReason] = reason;
  return reason;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) t: u32) {
  let sampled = state.tables[sampled_state_at() + kStateRows];
  let ring_index = state.ring_index;
  if (t < TABLE_SEQUENCES) {
    chosen[t] = kNoToken;
  }
  workgroupBarrier(); // `chosen` is clear
  var slot = 0u;
  var pos = 0u;
  var own = 0u;
  var is_running = false;
  if (t < sampled) {
    slot = state.tables[sampled_at(t)];
    pos = position_of_row(state.tables[sampled_at(t) + 1u]) + 1u;
    own = token[t];
    chosen[slot] = own;
    count_token(slot, pos, own);
    is_running = move_on(record_at(slot), pos, own) == kRunning;
  }
  runs[t] = select(0u, 1u, is_running);
  workgroupBarrier(); // `chosen` and `runs` are complete
  storageBarrier();   // and all have read the tables and ring_index
  if (t < TABLE_SEQUENCES) {
    ring[(ring_index % STEP_RING) * TABLE_SEQUENCES + t] = chosen[t];
  }
  var before = 0u;
  var rows = 0u;
  for (var i = 0u; i < sampled; i++) {
    before += select(0u, runs[i], i < t);
    rows += runs[i];
  }
  if (is_running) {
    set_row(before, slot, pos);
    set_sampled(before, slot, before);
    tokens[before] = own;
  }
  if (t == 0u) {
    state.rows = rows;
    state.single_rows = rows;
    set_sampled_rows(rows);
    state.ring_index = ring_index + 1u;
  }
}
