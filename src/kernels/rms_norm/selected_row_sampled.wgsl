// The rows before the head of a step of many sequences: those that choose a token. Twins: selected_row_last,
// scaled_rows. The kernel binds `state`.
//!import common/step_tables

alias RmsNormState = StepState;

fn selected_rows() -> u32 { return state.tables[sampled_state_at() + 1u]; }
fn selected_row(i: u32) -> u32 { return state.tables[sampled_at(i) + 1u]; }
fn sum_scale() -> f32 { return 1.0; }
