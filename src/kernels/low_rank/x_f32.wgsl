// Four numbers of a row of f32 of any length; zeros after its end. Twins: x_vec4, x_q8. The kernel binds `x`. Const: K.
alias XElement = f32;

fn load_x(row: u32, quad: u32) -> vec4f {
  var values = vec4f();
  for (var j = 0u; j < 4u; j++) {
    let i = quad * 4u + j;
    if (i < K) { values[j] = x[row * K + i]; }
  }
  return values;
}
