// The end of a step of many sequences that evaluates drafts. One workgroup in all, an invocation for each row. The
// first row of each slot walks over the slot's rows. Contract: advance_drafts.h, whose numbers the comments give.
// Consts besides those of slot_end: WORKGROUP, STEP_RING, SIMULATED.
//!import common/philox
//!import common/step_tables
//!import step/step_records
//!import step/slot_end
//!import step/draft_text
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read> choices: array<u32>;
@group(0) @binding(2) var<storage, read_write> text: DraftText;
@group(0) @binding(3) var<storage, read_write> ring: array<u32>;
@group(0) @binding(4) var<storage, read_write> counts: array<u32>;
@group(0) @binding(5) var<storage, read_write> recent: array<u32>;

const kNoToken = 0xFFFFFFFFu;
const kRejected = 0xFFFFFFFDu;
const kNoDraft = 0xFFFFFFFCu;
const kOfDraft = 2u; // the number of a token's random number; sample_place has 0 and 1

fn is_right(record: u32, choice: u32, draft: u32) -> bool {
  if (SIMULATED < 0.0) {
    return choice == draft && choice < VOCAB_SIZE;
  }
  let seed = vec2u(state.tables[record + kRecordSeed], state.tables[record + kRecordSeed + 1u]);
  let random = philox(vec4u(state.tables[record + kRecordGenerated], kOfDraft, 0u, 0u), seed);
  return f32(random >> 8u) < SIMULATED * 16777216.0 && choice < VOCAB_SIZE;
}

fn is_of(row: u32, rows: u32, slot: u32) -> bool { return row < rows && slot_of_row(row) == slot; }

// The entry of row `first` + i of a slot that runs. Moves the slot on if the row's choice counts.
fn end_row(slot: u32, record: u32, row: u32, may_count: bool, has_row: bool) -> u32 {
  if (!may_count) {
    return select(kNoDraft, kRejected, has_row); // 2
  }
  let pos = position_of_row(row) + 1u;
  count_token(slot, pos, choices[row]); // 1
  _ = move_on(record, pos, choices[row]);
  state.tables[record + kRecordKeptRow] = row; // 3
  return choices[row];
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) t: u32) {
  let rows = state.rows;
  let ring_index = state.ring_index;
  let entries = state.tables[request_at() + kRequestEntries];
  for (var i = 0u; i < entries && t < TABLE_SEQUENCES; i++) {
    ring[((ring_index + i) % STEP_RING) * TABLE_SEQUENCES + t] = kNoToken;
  }
  storageBarrier(); // the entries are clear, and all have read ring_index
  workgroupBarrier();
  if (t == 0u) {
    state.ring_index = ring_index + entries; // 4
  }
  if (t >= rows) {
    return;
  }
  let slot = slot_of_row(t);
  if (t > 0u && slot_of_row(t - 1u) == slot) {
    return;
  }
  let record = record_at(slot);
  var counts_too = true;
  for (var i = 0u; i < entries && state.tables[record + kRecordStopReason] == kRunning; i++) {
    let row = t + i;
    let has_row = is_of(row, rows, slot);
    if (i > 0u) {
      counts_too = counts_too && has_row && is_right(record, choices[row - 1u], text.rows[row]);
    }
    ring[((ring_index + i) % STEP_RING) * TABLE_SEQUENCES + slot] = end_row(slot, record, row, counts_too, has_row);
  }
}
