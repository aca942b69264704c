// The tables of a step of many sequences. One workgroup in all, an invocation for each decoding slot; the rows of
// pieces are spread over all invocations. Shared: which slots run. Contract: arrange.h.
//!import common/step_tables
//!import step/step_records
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read_write> tokens: array<u32>;

var<workgroup> runs: array<u32, WORKGROUP>;

fn request_word(i: u32) -> u32 { return state.tables[request_at() + i]; }
fn piece_word(piece: u32, i: u32) -> u32 { return request_word(kRequestPiece + piece * kPieceWords + i); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) t: u32) {
  let decoding = request_word(kRequestDecoding);
  let pieces = request_word(kRequestPieces);
  let slot = request_word(kRequestSlots + t);
  let is_decoding = t < decoding;
  let record = record_at(select(0u, slot, is_decoding));
  let is_running = is_decoding && state.tables[record + kRecordStopReason] == kRunning;
  runs[t] = select(0u, 1u, is_running);
  workgroupBarrier(); // all of `runs`
  var before = 0u;
  var running = 0u;
  for (var i = 0u; i < decoding; i++) {
    before += select(0u, runs[i], i < t);
    running += runs[i];
  }
  let row = select(t, before, pieces == 0u);
  if (is_running || (is_decoding && pieces > 0u)) {
    set_row(row, slot, select(kNowhere, state.tables[record + kRecordPos], is_running));
    tokens[row] = state.tables[record + kRecordToken];
  }
  if (is_running) {
    set_sampled(before, slot, row);
  }

  var rows = select(decoding, running, pieces == 0u);
  var sampled = running;
  for (var piece = 0u; piece < pieces; piece++) {
    let piece_slot = piece_word(piece, kPieceSlot);
    let pos = piece_word(piece, kPiecePos);
    let piece_rows = piece_word(piece, kPieceRows);
    for (var i = t; i < piece_rows; i += WORKGROUP) {
      set_row(rows + i, piece_slot, pos + i);
    }
    rows += piece_rows;
    let samples = piece_word(piece, kPieceSample) != 0u;
    if (t == 0u) {
      state.tables[record_at(piece_slot) + kRecordPos] = pos + piece_rows;
      if (samples) {
        set_sampled(sampled, piece_slot, rows - 1u);
      }
    }
    sampled += select(0u, 1u, samples);
  }
  if (t == 0u) {
    state.rows = rows;
    state.single_rows = select(decoding, running, pieces == 0u);
    set_sampled_rows(sampled);
  }
}
