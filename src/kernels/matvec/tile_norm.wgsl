// 1 / sqrt(mean(x^2) + eps) from the sums of squares of x's blocks of 16, which x's producer left in square_sums; as
// load_before() and stage_before() of matvec/tile_sum.
// Consts: NORMED (else the factor is 1), UNITS (half the number of sums), THREADS, NORM_EPS.

// Invocations that load sums: few enough for each reader to add what they bring.
const kNormLoaders = min(64u, THREADS);

var<workgroup> norm_parts: array<vec4<f32>, kNormLoaders / 4u>;

fn load_before(row: u32, local: u32) -> f32 {
  var sum = 0.0;
  if (NORMED) {
    for (var i = 0u; i < (2u * UNITS + kNormLoaders - 1u) / kNormLoaders; i++) {
      let at = kNormLoaders * i + local % kNormLoaders;
      sum += select(0.0, square_sums[min(at, 2u * UNITS - 1u)], at < 2u * UNITS);
    }
  }
  return sum;
}

fn stage_before(local: u32, early: f32) {
  if (NORMED && local < kNormLoaders) { norm_parts[local >> 2u][local & 3u] = early; }
}

// After the barrier.
fn norm_factor() -> f32 {
  if (!NORMED) { return 1.0; }
  var four = vec4<f32>(0.0);
  for (var i = 0u; i < kNormLoaders / 4u; i++) { four += norm_parts[i]; }
  return inverseSqrt(((four.x + four.y) + (four.z + four.w)) / f32(32u * UNITS) + NORM_EPS);
}
