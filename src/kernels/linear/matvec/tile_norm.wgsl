// 1 / sqrt(mean(x^2) + eps) from the sums of squares of x's blocks of 16, which x's producer left in square_sums: its
// load_before() and stage_before() are those of linear/matvec/tile_sum; gather_norm() adds up what they bring.
// Consts: NORMED (else the factor is 1), UNITS (half the number of sums), THREADS, NORM_EPS.

// Every invocation loads as many sums as another, and stores its own without a branch: a compiler moves the weights'
// loads after a branch, where they wait for x (NVIDIA 580; docs/design/performance.md).
const kNormEach = (2u * UNITS + THREADS - 1u) / THREADS;
const kNormParts = min(32u, THREADS);  // few enough for each reader to add them

var<workgroup> norm_sums: array<f32, THREADS>;
var<workgroup> norm_parts: array<f32, kNormParts>;

fn load_before(row: u32, local: u32) -> f32 {
  var sum = 0.0;
  if (NORMED) {
    for (var i = 0u; i < kNormEach; i++) {
      let at = THREADS * i + local;
      sum += select(0.0, square_sums[min(at, 2u * UNITS - 1u)], at < 2u * UNITS);
    }
  }
  return sum;
}

fn stage_before(local: u32, early: f32) {
  if (NORMED) { norm_sums[local] = early; }
}

// Behind the barrier of the staged row, before the one of the joined slices (reduce_slices).
fn gather_norm(local: u32) {
  if (!NORMED || local >= kNormParts) { return; }
  var sum = 0.0;
  for (var i = local; i < THREADS; i += kNormParts) { sum += norm_sums[i]; }
  norm_parts[local] = sum;
}

// After that barrier.
fn norm_factor() -> f32 {
  if (!NORMED) { return 1.0; }
  var four = vec4<f32>(0.0);
  for (var i = 0u; i < kNormParts; i += 4u) {
    four += vec4<f32>(norm_parts[i], norm_parts[i + 1u], norm_parts[i + 2u], norm_parts[i + 3u]);
  }
  return inverseSqrt(((four.x + four.y) + (four.z + four.w)) / f32(32u * UNITS) + NORM_EPS);
}
