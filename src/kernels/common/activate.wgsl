// The activation of gates or sums, chosen by ACTIVATE (the values of kernels::Activate: 1 silu, 2 gelu with tanh, 3
// gelu with erf). All three are x times a number in [0, 1] that needs only exp: WGSL's tanh may be as coarse as 2^-11,
// and it has no erf. Relative L2 error below 3e-7.

fn sigmoid(x: f32) -> f32 { return 1.0 / (1.0 + exp(min(-x, 87.0))); } // beyond 87 exp would overflow f32

// (1 + erf(z)) / 2. Near zero a Taylor polynomial (first term left out: z^13 / 9360); elsewhere
// erfc(|z|) = exp(-z^2) t Q(t), t = 1 / (1 + |z| / 2), with Q interpolated at the Chebyshev nodes of t = 0.174..1.
fn normal_share(z: f32) -> f32 {
  let z2 = z * z;
  let series = 1.0 / 3.0 - z2 * (0.1 - z2 * (1.0 / 42.0 - z2 * (1.0 / 216.0 - z2 / 1320.0)));
  let near = 0.5 + 0.5641895835 * z * (1.0 - z2 * series); // 1 / sqrt(pi)
  let t = 1.0 / (1.0 + 0.5 * abs(z));
  let u = t * 2.4210526943 - 1.4210525751;
  var q = -5.026896906e-5;
  q = q * u + 1.507187972e-5;
  q = q * u + 5.577497650e-4;
  q = q * u - 5.747568794e-4;
  q = q * u - 5.965965800e-3;
  q = q * u + 5.602849182e-3;
  q = q * u + 1.004130021e-1;
  q = q * u + 3.251458704e-1;
  q = q * u + 5.748564005e-1;
  let half_erfc = 0.5 * t * q * exp(-min(z2, 87.0));
  let far = select(1.0 - half_erfc, half_erfc, z < 0.0);
  return select(far, near, abs(z) < 0.5);
}

fn activate(x: f32) -> f32 {
  if (ACTIVATE == 1u) {
    return x * sigmoid(x);
  }
  if (ACTIVATE == 2u) { // (1 + tanh(v)) / 2 = sigmoid(2 v); 1.5957691216 = 2 sqrt(2 / pi)
    return x * sigmoid(1.5957691216 * x * (1.0 + 0.044715 * x * x));
  }
  return x * normal_share(x * 0.70710678119);
}
