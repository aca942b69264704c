// The values that change from token to token: the WGSL twin of common/step_state.h, which explains each field.
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
}
