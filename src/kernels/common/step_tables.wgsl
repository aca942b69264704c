// The step state with the tables of many sequences behind it: the WGSL twin of common/step_tables.h, which explains them.
// Stands in for common/step_state in plans of many sequences.
// Consts: TABLE_SEQUENCES, TABLE_ROWS, TABLE_BLOCKS, BLOCK_LEN.
struct StepState {
  pos: u32,
  rows: u32,
  ctx_len: u32,
  generated: u32,
  max_generated: u32,
  stop_reason: u32,
  ring_index: u32,
  seed_low: u32,
  seed_high: u32,
  stop_token_count: u32,
  ignore_stop: u32,
  single_rows: u32,
  stop_tokens: array<u32, 32>,
  kept_row: u32,
  rope_shift: u32,
  tables: array<u32>,  // places are counted from here
}
const kStateWords = 46u;
const kNowhere = 0xFFFFFFFFu;

fn aligned_words(words: u32) -> u32 { return (words + 63u) / 64u * 64u; }

fn sampled_state_at() -> u32 { return 64u - kStateWords; }
fn request_at() -> u32 { return 128u - kStateWords; }
fn piece_count() -> u32 { return state.tables[request_at() + 1u]; }
fn piece_at(i: u32) -> u32 { return request_at() + 4u + 64u + 4u * i; } // slot, pos, rows, sample
fn sampled_at(i: u32) -> u32 { return 128u + 128u - kStateWords + 2u * i; }
fn row_at(row: u32) -> u32 { return 128u + 128u + 128u - kStateWords + 2u * row; }
fn block_table_at(slot: u32) -> u32 { return row_at(0u) + aligned_words(2u * TABLE_ROWS) + slot * TABLE_BLOCKS; }
fn record_at(slot: u32) -> u32 { return block_table_at(0u) + aligned_words(TABLE_SEQUENCES * TABLE_BLOCKS) + slot * 48u; }

fn slot_of_row(row: u32) -> u32 { return state.tables[row_at(row)]; }
fn position_of_row(row: u32) -> u32 { return state.tables[row_at(row) + 1u]; }
