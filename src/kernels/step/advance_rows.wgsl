// The end of a step of many sequences. One workgroup in all, an invocation for each row that chose a token. Shared: the
// token of each slot, and which rows go on. Contract: advance.h, whose numbers the comments give.
//!import common/step_tables
//!import step/step_records
//!import step/slot_end
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read> token: array<u32>;
@group(0) @binding(2) var<storage, read_write> ring: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;
@group(0) @binding(4) var<storage, read_write> recent: array<u32>;
@group(0) @binding(5) var<storage, read_write> tokens: array<u32>;

const kNoToken = 0xFFFFFFFFu;
var<workgroup> chosen: array<u32, TABLE_SEQUENCES>;
var<workgroup> runs: array<u32, WORKGROUP>;

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
