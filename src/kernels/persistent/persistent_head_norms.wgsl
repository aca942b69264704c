// Norms of the heads of q and of k before they are rotated (RopeKv::norms in rope/rope.h). A norm's factor is one
// number a head, which commutes with the rotation. So pairs are multiplied by the weights at once, and by the factor at
// their use, after the barrier that completes the squares and is needed anyway.
// The pairs' squares, of the query heads and the key, lie in `partial`, which no product has in use during attention.
// Binding of the entry: vectors. Set before: qk_norms_at. Twin with the same functions: persistent_head_plain.
//!import persistent/persistent_stage

const kHeadPairs = HEAD_DIM / 2u;

var<private> head_factors: array<f32, HEADS + 1u>;

// Asked for before the pair is waited for.
fn head_weights(h: u32, places: vec2u) -> vec2f {
  let first = qk_norms_at + select(0u, HEAD_DIM, h >= HEADS);
  return vec2f(vectors[first + places.x], vectors[first + places.y]);
}

fn weigh_pair(h: u32, pair: u32, pair_values: vec2f, weights: vec2f) -> vec2f {
  if (h > HEADS) { return pair_values; }
  partial[h * kHeadPairs + pair] = dot(pair_values, pair_values);
  return pair_values * weights;
}

// Called after a barrier; each subgroup makes all factors.
fn make_head_factors(thread: u32) {
  for (var h = 0u; h <= HEADS; h++) {
    var squares = 0.0;
    for (var pair = thread % SUBGROUP; pair < kHeadPairs; pair += SUBGROUP) { squares += partial[h * kHeadPairs + pair]; }
    for (var distance = 1u; distance < SUBGROUP; distance <<= 1u) { squares += subgroupShuffleXor(squares, distance); }
    head_factors[h] = inverseSqrt(squares / f32(HEAD_DIM) + NORM_EPS);
  }
}

fn normed_head(h: u32, quad: vec4f) -> vec4f { return quad * head_factors[h]; }
