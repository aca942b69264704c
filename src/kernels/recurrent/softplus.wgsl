// log(1 + exp(x)) without WGSL's log, which near 1 is only good to 2^-21: small values keep their digits. With z = e /
// (2 + e) log(1 + e) = 2 atanh(z), and z <= 1/3 (first term left out: z^15 / 15). Relative error below 5e-7.
fn softplus(x: f32) -> f32 {
  let e = exp(-min(abs(x), 87.0)); // beyond 87 exp would leave f32
  let z = e / (2.0 + e);
  let z2 = z * z;
  let series =
      1.0 + z2 * (1.0 / 3.0 + z2 * (0.2 + z2 * (1.0 / 7.0 + z2 * (1.0 / 9.0 + z2 * (1.0 / 11.0 + z2 / 13.0)))));
  return max(x, 0.0) + 2.0 * z * series;
}
