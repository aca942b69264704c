// One output of a causal convolution. With IS_SINGLE each run is one row, and the state of the channel moves on too.
// The kernel declares weight [CHANNELS, KERNEL], then the biases, besides what causal_conv_input asks for.
//!import common/activate
//!import recurrent/causal_conv_input
fn output_at(run: Run, row: u32, channel: u32) -> f32 {
  let offset = row - run.first;
  var sum = 0.0;
  if (HAS_BIAS) {
    sum = weight[CHANNELS * KERNEL + channel];
  }
  for (var back = kKept; back > 0u; back--) {
    sum += weight[channel * KERNEL + kKept - back] * earlier_input(run, offset, back, channel);
  }
  let newest = input_at(row, channel);
  sum += weight[channel * KERNEL + kKept] * newest;
  if (IS_SINGLE && run.advances) {
    for (var i = 0u; i + 1u < kKept; i++) {
      kept[kept_at(run.slot, i, channel)] = earlier_input(run, 0u, kKept - 1u - i, channel);
    }
    kept[kept_at(run.slot, kKept - 1u, channel)] = newest;
  }
  if (HAS_ACTIVATION) {
    sum = activate(sum);
  }
  if (IS_GATED) {
    sum *= x[row * X_STRIDE + X_COLUMN + CHANNELS + channel];
  }
  return sum;
}
