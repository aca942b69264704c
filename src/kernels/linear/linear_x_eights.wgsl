// Eight activations of a row of params.k, a multiple of 8: two vec4 loads; past the row's end they are zero.
// Binding of the entry: x. Twin of linear_x_any.
alias XElement = vec4<f32>;

fn x8(row: u32, i: u32) -> mat2x4<f32> {
  let eights = params.k / 8u;
  let at = 2u * (row * eights + min(i, eights - 1u));
  let inside = select(0.0, 1.0, i < eights);
  return mat2x4<f32>(x[at] * inside, x[at + 1u] * inside);
}
