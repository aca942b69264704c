// A number of the product's output after a row's adapter has changed it: gain * value + B low + constant. The kernel
// binds `b` and imports a fragment with `low_of`. Consts: COLUMNS, RANK4, AFFINE.
const kQuadsOfB = RANK4 + select(0u, 1u, AFFINE);

fn adapted(row: u32, adapter: u32, column: u32, value: f32) -> f32 {
  if (adapter == 0u) { return value; }
  let first = (adapter - 1u) * kQuadsOfB * COLUMNS + column;
  var sums = vec4f();
  for (var r = 0u; r < RANK4; r++) { sums += b[first + r * COLUMNS] * low_of(row, adapter, column, r); }
  let sum = sums.x + sums.y + sums.z + sums.w;
  if (AFFINE) {
    let affine = b[first + RANK4 * COLUMNS];
    return value * affine.x + sum + affine.y;
  }
  return value + sum;
}
