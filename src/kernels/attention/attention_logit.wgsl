// From q.k to the exponent of 2 that softmax works with. q arrives multiplied by Q_SCALE: scale * log2(e), or with
// a softcap scale / softcap. All later exponentials are exp2.
const kLog2E: f32 = 1.4426950408889634;
const kLowest: f32 = -1e30; // below every logit, and far from overflow when subtracted from one

// tanh to 2e-7 absolute: WGSL's own may be off by 2^-11 and overflows to NaN on some drivers.
fn tanh_exact(x: f32) -> f32 {
  let a = min(abs(x), 15.0); // tanh(15) is 1 in f32
  let a2 = a * a;
  // Taylor to a^9: below 2e-8 for a < 0.25, where 1 - 2 / (e + 1) would cancel.
  let small = a * (1.0 + a2 * (-0.33333333 + a2 * (0.13333333 + a2 * (-0.053968254 + a2 * 0.021869489))));
  let large = 1.0 - 2.0 / (exp2(2.0 * kLog2E * a) + 1.0);
  return sign(x) * select(large, small, a < 0.25);
}

fn logit(dot_scaled: f32) -> f32 {
  if (HAS_SOFTCAP) {
    return SOFTCAP * kLog2E * tanh_exact(dot_scaled);
  }
  return dot_scaled;
}
