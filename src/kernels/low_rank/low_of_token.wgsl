// Four of the numbers that an embedding's B is multiplied with: they come from the adapter's row of the row's token.
// Twin: low_of_product. The kernel binds `low` and `tokens`. Consts: VOCAB, RANK4.
fn low_of(row: u32, adapter: u32, column: u32, r: u32) -> vec4f {
  return low[((adapter - 1u) * VOCAB + min(tokens[row], VOCAB - 1u)) * RANK4 + r];
}
