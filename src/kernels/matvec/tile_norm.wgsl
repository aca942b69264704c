// 1 / sqrt(mean(x^2) + eps) from the sums of squares of x's blocks of 32, which x's producer left in square_sums; as
// load_before() and stage_before() of matvec/tile_sum.
// Consts: NORMED (else the factor is 1), UNITS (the number of sums), NORM_EPS.

var<workgroup> norm_parts: array<vec4<f32>, 8>;

fn load_before(row: u32, local: u32) -> f32 {
  var sum = 0.0;
  if (NORMED) {
    for (var i = 0u; i < (UNITS + 31u) / 32u; i++) {
      let at = 32u * i + (local & 31u);
      sum += select(0.0, square_sums[min(at, UNITS - 1u)], at < UNITS);
    }
  }
  return sum;
}

fn stage_before(local: u32, early: f32) {
  if (NORMED && local < 32u) { norm_parts[local >> 2u][local & 3u] = early; }
}

// After the barrier.
fn norm_factor() -> f32 {
  if (!NORMED) { return 1.0; }
  let four = ((norm_parts[0] + norm_parts[1]) + (norm_parts[2] + norm_parts[3])) +
             ((norm_parts[4] + norm_parts[5]) + (norm_parts[6] + norm_parts[7]));
  return inverseSqrt(((four.x + four.y) + (four.z + four.w)) / f32(32u * UNITS) + NORM_EPS);
}
