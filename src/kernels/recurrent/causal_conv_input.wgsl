// Shared by both causal_conv kernels: the inputs of a channel, from this step's rows and from the state, which holds
// the KERNEL - 1 inputs before the next position, oldest first. The kernel declares x and kept.
const kKept = KERNEL - 1u;

fn input_at(row: u32, channel: u32) -> f32 {
  let at = row * X_STRIDE + X_COLUMN + channel;
  if (IS_GATED) { // B, C and u beside one another
    return x[at] * x[at + 2u * CHANNELS];
  }
  return x[at];
}

fn kept_at(slot: u32, i: u32, channel: u32) -> u32 { return (slot * kKept + i) * CHANNELS + channel; }

// The input `back` positions before the run's row `offset`.
fn earlier_input(run: Run, offset: u32, back: u32, channel: u32) -> f32 {
  if (back <= offset) {
    return input_at(run.first + offset - back, channel);
  }
  if (run.position == 0u || !run.advances) {
    return 0.0;
  }
  return kept[kept_at(run.from_slot, kKept - (back - offset), channel)];
}
