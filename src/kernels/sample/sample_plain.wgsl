// Step 1 of sample.h: a logit with scale and softcap. Needs sample_values. Consts: LOGIT_SCALE, SOFTCAP.

// c tanh(l / c) from exp, since WGSL's tanh may be as coarse as 2^-11.
fn soften(l: f32) -> f32 {
  let e = exp(-2.0 * min(abs(l) / SOFTCAP, 40.0));
  return sign(l) * SOFTCAP * (1.0 - e) / (1.0 + e);
}

fn plain_l(bits: u32) -> f32 {
  var l = clean(bits);
  if (l <= kExcluded) {
    return -kLimit;
  }
  l *= LOGIT_SCALE;
  if (SOFTCAP > 0.0) {
    l = soften(l);
  }
  return l;
}
