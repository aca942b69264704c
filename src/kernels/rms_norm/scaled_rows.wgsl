// All rows, with a scale of their sum that is a number of the model: it takes the binding of the step's state, which
// only a selection of rows reads. Twins: selected_row_last, selected_row_sampled. The kernel binds `state`.
struct RmsNormState {
  sum_scale: f32,
}

fn selected_rows() -> u32 { return 0u; }
fn selected_row(i: u32) -> u32 { return i; }
fn sum_scale() -> f32 { return state.sum_scale; }
