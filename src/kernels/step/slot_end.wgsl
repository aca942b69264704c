// The end of a slot's step, in plans of many sequences. Contract: advance.h, whose numbers the comments give.
// The kernel binds `state`, `counts` and `recent`. Consts: VOCAB_SIZE, PENALTY_RING, MAX_STOP_TOKENS.
//!import common/step_tables
//!import step/step_records
const kStopToken = 1u;
const kTokenLimit = 2u;
const kContextFull = 3u;

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
