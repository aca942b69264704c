// The row before the head of a step of one sequence: the last. Twins: selected_row_sampled, scaled_rows. The kernel
// binds `state`.
//!import common/step_state

alias RmsNormState = StepState;

fn selected_rows() -> u32 { return 1u; }
fn selected_row(i: u32) -> u32 { return state.rows - 1u; }
fn sum_scale() -> f32 { return 1.0; }
