// x in 8-bit blocks, made here from the residual and the branch of a layer with norms after its branches (AddRmsNorm):
//   x = residual + branch / sqrt(mean(branch^2) + eps) * add_weight;  h = x * weight
// The product reads h, without its norm's division (norm_factor). Each workgroup makes the whole h, which costs less
// than a dispatch of its own if h is short; each block of x is written by one.
// An invocation makes one block of 16, so THREADS must be kBlocks or more. Barrier: branch_parts.
// Twins: tile_x_add_norm_subgroup; tile_x_q8 with tile_norm.
// Bindings of the entry: residual, branch, add_weight, weight (vec4s of f32), x. Consts: UNITS, THREADS, GROUPS,
// NORM_EPS.
//!import linear/matvec/tile_x_blocks

// Sums of squares, one an invocation; those without a block bring zero.
const kParts = (kBlocks + 3u) / 4u * 4u;

var<workgroup> branch_parts: array<f32, kParts>;
var<workgroup> x_parts: array<f32, kParts>;

struct XShare {
  residual: Sixteen,
  branch: Sixteen,
  add_weight: Sixteen,
  weight: Sixteen,
}

fn load_share(local: u32) -> XShare {
  let at = 4u * min(local, kBlocks - 1u);
  return XShare(Sixteen(residual[at], residual[at + 1u], residual[at + 2u], residual[at + 3u]),
                Sixteen(branch[at], branch[at + 1u], branch[at + 2u], branch[at + 3u]),
                Sixteen(add_weight[at], add_weight[at + 1u], add_weight[at + 2u], add_weight[at + 3u]),
                Sixteen(weight[at], weight[at + 1u], weight[at + 2u], weight[at + 3u]));
}

fn square_sum(v: Sixteen) -> f32 { return (dot(v.a, v.a) + dot(v.b, v.b)) + (dot(v.c, v.c) + dot(v.d, v.d)); }

fn mean_factor(parts: vec4<f32>) -> f32 {
  return inverseSqrt(((parts.x + parts.y) + (parts.z + parts.w)) / f32(32u * UNITS) + NORM_EPS);
}

fn branch_factor() -> f32 {
  var four = vec4<f32>(0.0);
  for (var i = 0u; i < kParts; i += 4u) {
    four += vec4<f32>(branch_parts[i], branch_parts[i + 1u], branch_parts[i + 2u], branch_parts[i + 3u]);
  }
  return mean_factor(four);
}

fn norm_factor() -> f32 {
  var four = vec4<f32>(0.0);
  for (var i = 0u; i < kParts; i += 4u) {
    four += vec4<f32>(x_parts[i], x_parts[i + 1u], x_parts[i + 2u], x_parts[i + 3u]);
  }
  return mean_factor(four);
}

fn stage_share(local: u32, group: u32, share: XShare) {
  let has_block = local < kBlocks;
  if (local < kParts) { branch_parts[local] = select(0.0, square_sum(share.branch), has_block); }
  workgroupBarrier();
  let factor = branch_factor();
  let made = Sixteen(share.residual.a + factor * share.branch.a * share.add_weight.a,
                     share.residual.b + factor * share.branch.b * share.add_weight.b,
                     share.residual.c + factor * share.branch.c * share.add_weight.c,
                     share.residual.d + factor * share.branch.d * share.add_weight.d);
  if (local < kParts) { x_parts[local] = select(0.0, square_sum(made), has_block); }
  if (has_block) {
    stage_block(local, Sixteen(made.a * share.weight.a, made.b * share.weight.b, made.c * share.weight.c,
                               made.d * share.weight.d));
    if (local % GROUPS == group) {
      x[4u * local] = made.a;
      x[4u * local + 1u] = made.b;
      x[4u * local + 2u] = made.c;
      x[4u * local + 3u] = made.d;
    }
  }
}

// linear/matvec/tile_sum calls these: nothing besides x.
fn load_before(row: u32, local: u32) -> u32 { return 0u; }
fn stage_before(local: u32, early: u32) {}
