// Four independent chains of products on the matrix units a subgroup, a product of each in a round, all in registers.
// The right fragments differ, or one chain would do for all. Nothing shared; the sums are exact while they are whole
// and below 2^24.
//!import common/fragments
@group(0) @binding(0) var<storage, read> seed: array<f16>;  // a left fragment, then four right ones
@group(0) @binding(1) var<storage, read_write> results: array<f32>;  // four fragments a subgroup

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(subgroup_id) subgroup: u32) {
  let left = subgroupMatrixLoad<Left, row_major>(&seed, 0u, 16u);
  let right0 = subgroupMatrixLoad<Right, row_major>(&seed, 256u, 16u);
  let right1 = subgroupMatrixLoad<Right, row_major>(&seed, 512u, 16u);
  let right2 = subgroupMatrixLoad<Right, row_major>(&seed, 768u, 16u);
  let right3 = subgroupMatrixLoad<Right, row_major>(&seed, 1024u, 16u);
  var a: Sum;
  var b: Sum;
  var c: Sum;
  var d: Sum;
  for (var i = 0u; i < ROUNDS; i++) {
    a = subgroupMatrixMultiplyAccumulate(left, right0, a);
    b = subgroupMatrixMultiplyAccumulate(left, right1, b);
    c = subgroupMatrixMultiplyAccumulate(left, right2, c);
    d = subgroupMatrixMultiplyAccumulate(left, right3, d);
  }
  let to = (group.x * SUBGROUPS + subgroup) * 1024u;
  subgroupMatrixStore<row_major>(&results, to, a, 16u);
  subgroupMatrixStore<row_major>(&results, to + 256u, b, 16u);
  subgroupMatrixStore<row_major>(&results, to + 512u, c, 16u);
  subgroupMatrixStore<row_major>(&results, to + 768u, d, 16u);
}
