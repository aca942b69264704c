// Fields of the step tables that the ends of a step read and write, as words: the WGSL twin of the structs StepRequest,
// PieceRequest and SequenceRecord (common/step_tables.h).
//!import common/step_tables
const kStateRows = 1u; // of a StepState

const kRequestDecoding = 0u;
const kRequestPieces = 1u;
const kRequestEntries = 2u;
const kRequestSlots = 4u;
const kRequestPiece = 68u;
const kPieceWords = 4u;
const kPieceSlot = 0u;
const kPiecePos = 1u;
const kPieceRows = 2u;
const kPieceSample = 3u;

const kRecordPos = 0u;
const kRecordToken = 1u;
const kRecordContext = 2u;
const kRecordGenerated = 3u;
const kRecordMaxGenerated = 4u;
const kRecordStopReason = 5u;
const kRecordSeed = 6u; // two words
const kRecordStopTokenCount = 8u;
const kRecordIgnoreStop = 9u;
const kRecordKeptRow = 10u;
const kRecordStopTokens = 16u;

const kRunning = 0u;

fn set_row(row: u32, slot: u32, position: u32) {
  state.tables[row_at(row)] = slot;
  state.tables[row_at(row) + 1u] = position;
}

fn set_sampled(i: u32, slot: u32, row: u32) {
  state.tables[sampled_at(i)] = slot;
  state.tables[sampled_at(i) + 1u] = row;
}

fn set_sampled_rows(rows: u32) { state.tables[sampled_state_at() + kStateRows] = rows; }
