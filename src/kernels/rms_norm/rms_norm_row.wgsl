// The body of both rms_norm kernels, which declare the bindings and say how a row is summed (row_sum).
// An invocation takes four consecutive values, then the next four WORKGROUP * 4 further on, the same ones in both
// passes, so that it reads back only what it wrote itself.
const kStride = WORKGROUP * 4u;

// The added term: the sum of ADD_SPLITS splits of a product's columns.
fn added(row: u32, i: u32) -> f32 {
  var sum = 0.0;
  for (var split = 0u; split < ADD_SPLITS; split++) { sum += add[split * ADD_SPLIT + row * ADD_ROW + i]; }
  return sum;
}

fn normalise_row(group: u32, t: u32, subgroup: u32, subgroup_size: u32) {
  var in_row = group;
  if (SELECTS) {
    if (group >= selected_rows()) { return; }
    in_row = selected_row(group);
  }
  var add_scale = 1.0;
  if (HAS_ADD_NORM) {
    var add_squares = 0.0;
    for (var base = t * 4u; base < N; base += kStride) {
      for (var i = base; i < min(base + 4u, N); i++) {
        let value = added(in_row, i);
        add_squares += value * value;
      }
    }
    add_scale = inverseSqrt(row_sum(t, subgroup, subgroup_size, add_squares) / f32(N) + EPS);
    workgroupBarrier(); // the partial sums are used again
  }
  var squares = 0.0;
  for (var base = t * 4u; base < N; base += kStride) {
    for (var i = base; i < min(base + 4u, N); i++) {
      var value = x[in_row * N + i];
      if (HAS_ADD) {
        let summand = added(in_row, i);
        value += select(summand, summand * add_scale * add_weight[i], HAS_ADD_NORM);
        if (HAS_SCALE) { value *= sum_scale(); }
        x[in_row * N + i] = value;
      }
      squares += value * value;
    }
  }
  var scale = 1.0;
  if (HAS_NORM) { scale = inverseSqrt(row_sum(t, subgroup, subgroup_size, squares) / f32(N) + EPS); }
  for (var base = 0u; base < N; base += kStride) {
    let first = base + t * 4u;
    var values = vec4f();
    for (var j = 0u; j < 4u; j++) {
      let i = first + j;
      if (i < N) {
        values[j] = x[in_row * N + i];
        if (HAS_NORM) { values[j] *= scale * weight[i]; }
        if (HAS_F32) { y[group * N + i] = values[j]; }
      }
    }
    if (HAS_F16 && first < N) { store_f16_quad(group, first, values); }
    if (HAS_Q8) {
      store_q8(t, (group * N + first) / 4u, values, first < N);
    }
  }
}
