// 8-bit activations (common/forms.h) in workgroup memory, and a tile format's words times them. Loads from there
// instead of from the buffer: 14 instead of 31 us for 2048 x 8192 with 4 slices on an H200. Twins: tile_x_f32,
// tile_x_add_norm. Bindings of the entry: x (plane 0), x_scales (plane 1, a unit an element). Consts: UNITS, THREADS.

alias XElement = vec4<u32>;

const X_CODES = 2u * UNITS;
const X_EACH = (X_CODES + THREADS - 1u) / (THREADS);
const FACTORS_EACH = (UNITS + THREADS - 1u) / (THREADS);

var<workgroup> x_codes: array<vec4<u32>, X_CODES>;
var<workgroup> x_factors: array<vec4<f32>, UNITS>;  // (d, d * sum) of both blocks of a unit

// An invocation's part of x, loaded without a branch so that other loads can be under way meanwhile.
struct XShare {
  codes: array<vec4<u32>, X_EACH>,
  factors: array<vec4<f32>, FACTORS_EACH>,
}

fn load_share(local: u32) -> XShare {
  var share: XShare;
  for (var i = 0u; i < X_EACH; i++) { share.codes[i] = x[min(local + THREADS * i, X_CODES - 1u)]; }
  for (var i = 0u; i < FACTORS_EACH; i++) { share.factors[i] = x_scales[min(local + THREADS * i, UNITS - 1u)]; }
  return share;
}

// Called before a barrier that every invocation passes.
fn stage_share(local: u32, group: u32, share: XShare) {
  for (var i = 0u; i < X_EACH; i++) {
    let at = local + THREADS * i;
    if (at < X_CODES) { x_codes[at] = share.codes[i]; }
  }
  for (var i = 0u; i < FACTORS_EACH; i++) {
    let at = local + THREADS * i;
    if (at < UNITS) { x_factors[at] = share.factors[i]; }
  }
}

fn dot_unit(w: Words, u: u32) -> f32 {
  let d = x_factors[u];
  return words_dot_q8(w, x_codes[2u * u], x_codes[2u * u + 1u], d.xy, d.zw);
}
