// f32 activations in workgroup memory, and a tile format's words times them. Twins: tile_x_f32_far, tile_x_q8.
// Binding of the entry: x. Consts: UNITS, THREADS.
//!import weights/weight_bytes

alias XElement = vec4<f32>;

const X_QUADS = 8u * UNITS;
const X_EACH = (X_QUADS + THREADS - 1u) / THREADS;
// A unit takes nine places, so that two units read at once do not lie in the same banks.
const kUnitPlaces = 9u;

var<workgroup> x_quads: array<vec4<f32>, kUnitPlaces * UNITS>;

// What an invocation brings of x, loaded without a branch so that other loads can be under way meanwhile.
struct XShare {
  quads: array<vec4<f32>, X_EACH>,
}

fn load_share(local: u32) -> XShare {
  var share: XShare;
  for (var i = 0u; i < X_EACH; i++) { share.quads[i] = x[min(local + THREADS * i, X_QUADS - 1u)]; }
  return share;
}

// Before a barrier that every invocation passes.
fn stage_share(local: u32, group: u32, share: XShare) {
  for (var i = 0u; i < X_EACH; i++) {
    let at = local + THREADS * i;
    if (at < X_QUADS) { x_quads[at / 8u * kUnitPlaces + at % 8u] = share.quads[i]; }
  }
}

fn x16(at: u32) -> mat4x4<f32> {
  return mat4x4<f32>(x_quads[at], x_quads[at + 1u], x_quads[at + 2u], x_quads[at + 3u]);
}

fn dot_unit(w: Words, u: u32) -> f32 {
  let first = x16(kUnitPlaces * u);
  let second = x16(kUnitPlaces * u + 4u);
  return words_dot(w, first, second, vec2<f32>(sum16(first), sum16(second)));
}
