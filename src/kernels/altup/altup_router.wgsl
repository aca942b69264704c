// m of a row: tanh of its router's numbers, scaled. The kernel declares router and weight. Const: ROUTER_SCALE.
const kStreams = 4u;

// Uses only exp: WGSL's own tanh may be as coarse as 2^-11. Near zero a Taylor polynomial (first term left out: x^11 /
// 113).
fn exact_tanh(x: f32) -> f32 {
  let x2 = x * x;
  let near = x * (1.0 - x2 * (0.33333333 - x2 * (0.13333333 - x2 * (0.053968254 - x2 * 0.021869489))));
  let e = exp(2.0 * clamp(x, -15.0, 15.0));
  return select((e - 1.0) / (e + 1.0), near, abs(x) < 0.25);
}

fn modalities(row: u32) -> vec4f {
  var m = vec4f();
  for (var i = 0u; i < kStreams; i++) { m[i] = exact_tanh(ROUTER_SCALE * router[row * kStreams + i]); }
  return m;
}

// Number `i` of weight m.
fn coefficient(i: u32, m: vec4f) -> f32 {
  let at = i * kStreams;
  return dot(vec4f(weight[at], weight[at + 1u], weight[at + 2u], weight[at + 3u]), m);
}
