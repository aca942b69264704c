// Finishes a sum: bias and residual. Consts of the entry: HAS_BIAS, ACCUMULATE. Bindings: params, bias, y.

// One output of an ungated product: `row` is the weight row within this piece, `at` where it goes in y.
fn finish(row: u32, sum: f32, at: u32) {
  var value = sum;
  if (HAS_BIAS) { value += bias[params.first_row + row]; }
  if (ACCUMULATE) { value += y[at]; }
  y[at] = value;
}
