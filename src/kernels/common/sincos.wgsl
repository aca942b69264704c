// (cosine, sine) of a turn in 32-bit fixed point: phase / 2^32 of a full circle. WGSL's own sin and cos are only
// promised to 2^-11. The nearest quarter turn is split off exactly in integers; the rest, within an eighth of a turn,
// goes through Taylor polynomials whose first left-out terms are 7e-9 (sine, r^11) and 2e-8 (cosine, r^10) at its
// ends. Absolute error below 3e-7.
fn cos_sin(phase: u32) -> vec2f {
  let quarter = (phase + 0x20000000u) >> 30u;
  let rest = bitcast<i32>(phase - (quarter << 30u));
  let r = f32(rest) * 1.4629180792671596e-9; // 2 pi / 2^32
  let r2 = r * r;
  let s = r + r * r2 * (-0.16666667 + r2 * (8.3333333e-3 + r2 * (-1.9841270e-4 + r2 * 2.7557319e-6)));
  let c = 1.0 + r2 * (-0.5 + r2 * (4.1666667e-2 + r2 * (-1.3888889e-3 + r2 * 2.4801587e-5)));
  let swapped = select(vec2f(c, s), vec2f(s, c), (quarter & 1u) == 1u);
  // quarter 0: (c, s)  1: (-s, c)  2: (-c, -s)  3: (s, -c)
  let cosine = select(swapped.x, -swapped.x, quarter == 1u || quarter == 2u);
  let sine = select(swapped.y, -swapped.y, quarter >= 2u);
  return vec2f(cosine, sine);
}
