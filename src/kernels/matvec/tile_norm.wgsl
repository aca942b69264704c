// 1 / sqrt(mean(x^2) + eps) from the sums of squares of x's blocks of 32, which x's producer left in square_sums.
// Consts: NORMED (else the factor is 1), UNITS (the number of sums), NORM_EPS.

var<workgroup> norm_parts: array<f32, 32>;

// Before a barrier that every invocation passes.
fn add_square_sums(local: u32) {
  if (NORMED && local < 32u) {
    var sum = 0.0;
    for (var i = local; i < UNITS; i += 32u) { sum += square_sums[i]; }
    norm_parts[local] = sum;
  }
}

// After that barrier.
fn norm_factor() -> f32 {
  if (!NORMED) { return 1.0; }
  var sum = 0.0;
  for (var i = 0u; i < 32u; i++) { sum += norm_parts[i]; }
  return inverseSqrt(sum / f32(32u * UNITS) + NORM_EPS);
}
