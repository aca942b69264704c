// The last step of softmax: divides by the sum, which a sink enlarges by one more logit.
// The kernel binds `sinks`; without any the host binds something else there, which is not read.
//!import attention/attention_logit

// `head` may be counted on from those of the rows before.
fn sink_of(head: u32) -> f32 {
  if (HAS_SINKS) { return sinks[head % N_HEADS] * kLog2E; }
  return kLowest;
}

// `sum` and `weighted` are relative to 2^highest.
fn normalise_with(sink: f32, weighted: f32, highest: f32, sum: f32) -> f32 {
  if (HAS_SINKS) {
    let top = max(highest, sink);
    let factor = exp2(highest - top);
    return weighted * factor / (sum * factor + exp2(sink - top));
  }
  return weighted / sum;
}

fn normalise(head: u32, weighted: f32, highest: f32, sum: f32) -> f32 {
  return normalise_with(sink_of(head), weighted, highest, sum);
}
