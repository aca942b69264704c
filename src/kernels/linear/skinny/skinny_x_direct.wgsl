// x straight from its buffers, for devices where a load of the same address costs all invocations one (CPUs). Units are
// numbered from the beginning of the row. Twin: skinny_x_staged.
// Bindings of the entry: x, x_scales, state. Const: BATCH.

fn x_part(row: u32, c: u32, i: u32) -> vec4<u32> {
  let there = min(row, state.rows - 1u);
  if (i < X_LOADS) { return load_x(there, X_LOADS * c + i); }
  return load_factors(there, c);
}
