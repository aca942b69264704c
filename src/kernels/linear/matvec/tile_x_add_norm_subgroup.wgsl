// As tile_x_add_norm, for subgroups of 16 invocations or more: an invocation makes every THREADS-th quad of x instead
// of a block of 16. So all invocations load, neighbours load adjacent quads, and a norm's sum is left in few parts.
// THREADS is a multiple of 16, and invocations are numbered as in linear/matvec/invocation_subgroup. Barrier:
// branch_parts.
// Bindings and consts: those of tile_x_add_norm.
//!import common/q8_block
//!import linear/matvec/tile_x_codes

const kQuads = 8u * UNITS;
const kQuadsEach = (kQuads + THREADS - 1u) / THREADS;
const kParts = THREADS / 16u;

var<workgroup> branch_parts: array<f32, kParts>;          // sums of squares, each of 16 invocations
var<workgroup> x_parts: array<f32, kParts>;

struct XShare {
  residual: array<vec4<f32>, kQuadsEach>,
  branch: array<vec4<f32>, kQuadsEach>,
  add_weight: array<vec4<f32>, kQuadsEach>,
  weight: array<vec4<f32>, kQuadsEach>,
}

fn load_share(local: u32) -> XShare {
  var share: XShare;
  for (var e = 0u; e < kQuadsEach; e++) {
    let at = min(local + e * THREADS, kQuads - 1u);
    share.residual[e] = residual[at];
    share.branch[e] = branch[at];
    share.add_weight[e] = add_weight[at];
    share.weight[e] = weight[at];
  }
  return share;
}

fn sum_of_16(value: f32) -> f32 {
  let two = value + subgroupShuffleXor(value, 1u);
  let four = two + subgroupShuffleXor(two, 2u);
  let eight = four + subgroupShuffleXor(four, 4u);
  return eight + subgroupShuffleXor(eight, 8u);
}

fn mean_factor(total: f32) -> f32 { return inverseSqrt(total / f32(32u * UNITS) + NORM_EPS); }

fn branch_factor() -> f32 {
  var total = 0.0;
  for (var p = 0u; p < kParts; p++) { total += branch_parts[p]; }
  return mean_factor(total);
}

fn norm_factor() -> f32 {
  var total = 0.0;
  for (var p = 0u; p < kParts; p++) { total += x_parts[p]; }
  return mean_factor(total);
}

// Four neighbours have a block.
fn stage_quad(quad: u32, h: vec4<f32>) {
  let magnitudes = abs(h);
  let own = max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
  let two = max(own, subgroupShuffleXor(own, 1u));
  let largest = max(two, subgroupShuffleXor(two, 2u));
  let q = q8_quantise(h, largest);
  let word = q8_word(q);
  let codes = vec4<u32>(word, subgroupShuffleXor(word, 1u), subgroupShuffleXor(word, 2u), subgroupShuffleXor(word, 3u));
  let sum = (q.x + q.y) + (q.z + q.w);
  let of_two = sum + subgroupShuffleXor(sum, 1u);
  let of_four = of_two + subgroupShuffleXor(of_two, 2u);
  if ((quad & 3u) == 0u && quad < kQuads) {
    let scale = largest / 127.0;
    x_codes[quad / 4u] = codes;
    x_factors[quad / 4u] = vec2<f32>(scale, scale * f32(of_four));
  }
}

fn stage_share(local: u32, group: u32, share: XShare) {
  var squares = 0.0;
  for (var e = 0u; e < kQuadsEach; e++) {
    squares += select(0.0, dot(share.branch[e], share.branch[e]), local + e * THREADS < kQuads);
  }
  let of_branch = sum_of_16(squares);
  if ((local & 15u) == 0u) { branch_parts[local / 16u] = of_branch; }
  workgroupBarrier();
  let factor = branch_factor();
  squares = 0.0;
  for (var e = 0u; e < kQuadsEach; e++) {
    let quad = local + e * THREADS;
    let made = share.residual[e] + factor * share.branch[e] * share.add_weight[e];
    squares += select(0.0, dot(made, made), quad < kQuads);
    stage_quad(quad, made * share.weight[e]);
    if (quad < kQuads && quad / 4u % GROUPS == group) { x[quad] = made; }
  }
  let of_x = sum_of_16(squares);
  if ((local & 15u) == 0u) { x_parts[local / 16u] = of_x; }
}

// linear/matvec/tile_sum calls these: nothing besides x.
fn load_before(row: u32, local: u32) -> u32 { return 0u; }
fn stage_before(local: u32, early: u32) {}
