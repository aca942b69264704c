// The body of both low_rank_down kernels, which declare the bindings and give the sum over a workgroup (row_sum). A
// workgroup makes one number of one row's `low`.
// Consts: K, WIDTH, DEFERRED, EPS.
const kQuads = (K + 3u) / 4u;

fn make_low(j: u32, row: u32, t: u32, subgroup: u32, subgroup_size: u32) {
  let adapter = adapter_of(row);
  if (adapter == 0u) { return; }
  let first = ((adapter - 1u) * WIDTH + j) * kQuads;
  var sums = vec4f();
  for (var quad = t; quad < kQuads; quad += WORKGROUP) { sums += a[first + quad] * load_x(row, quad); }
  var sum = row_sum(t, subgroup, subgroup_size, sums.x + sums.y + sums.z + sums.w);
  if (DEFERRED) {
    workgroupBarrier(); // the partial sums are used again
    var squares = 0.0;
    for (var i = t; i < K / 16u; i += WORKGROUP) { squares += square_sums[i]; }
    sum *= inverseSqrt(row_sum(t, subgroup, subgroup_size, squares) / f32(K) + EPS);
  }
  if (t == 0u) { low[row * WIDTH + j] = sum; }
}
