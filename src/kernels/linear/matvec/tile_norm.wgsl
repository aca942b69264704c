// 1 / sqrt(mean(x^2) + eps) from the sums of squares of x's blocks of 16, which x's producer left in square_sums; as
// load_before() and stage_before() of linear/matvec/tile_sum.
// Consts: NORMED (else the factor is 1), UNITS (half the number of sums), THREADS, NORM_EPS.

// Invocations that load sums: few enough for each reader to add what they bring.
const kNormLoaders = min(32u, THREADS);

var<workgroup> norm_parts: array<f32, kNormLoaders>;

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
  if (NORMED && local < kNormLoaders) { norm_parts[local] = early; }
}

// After the barrier.
fn norm_factor() -> f32 {
  if (!NORMED) { return 1.0; }
  var four = vec4<f32>(0.0);
  for (var i = 0u; i < kNormLoaders; i += 4u) {
    four += vec4<f32>(norm_parts[i], norm_parts[i + 1u], norm_parts[i + 2u], norm_parts[i + 3u]);
  }
  return inverseSqrt(((four.x + four.y) + (four.z + four.w)) / f32(32u * UNITS) + NORM_EPS);
}
