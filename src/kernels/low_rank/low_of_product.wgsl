// Four of the numbers that B's rows are multiplied with: they come from a row of `low`, and there from the matrix that
// makes the column. Twin: low_of_token. The kernel binds `low`. Consts: END0, END1, END2 (the ends of the first
// matrices' columns), MATRICES, RANK4.
fn low_of(row: u32, adapter: u32, column: u32, r: u32) -> vec4f {
  let matrix = select(0u, 1u, column >= END0) + select(0u, 1u, column >= END1) + select(0u, 1u, column >= END2);
  return low[(row * MATRICES + matrix) * RANK4 + r];
}
