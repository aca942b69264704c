// Four numbers of a row of f32 whose length is a multiple of four. Twins: x_f32, x_q8. The kernel binds `x`. Const: K.
alias XElement = vec4<f32>;

fn load_x(row: u32, quad: u32) -> vec4f { return x[row * (K / 4u) + quad]; }
