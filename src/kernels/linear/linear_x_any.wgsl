// Eight activations of a row of params.k, which need not be a multiple of anything: past its end they are zero.
// Binding of the entry: x. Twin of linear_x_eights.
alias XElement = f32;

fn x_at(row: u32, column: u32) -> f32 {
  return select(0.0, x[row * params.k + min(column, params.k - 1u)], column < params.k);
}

fn x8(row: u32, i: u32) -> mat2x4<f32> {
  let c = 8u * i;
  return mat2x4<f32>(x_at(row, c), x_at(row, c + 1u), x_at(row, c + 2u), x_at(row, c + 3u), x_at(row, c + 4u),
                     x_at(row, c + 5u), x_at(row, c + 6u), x_at(row, c + 7u));
}
