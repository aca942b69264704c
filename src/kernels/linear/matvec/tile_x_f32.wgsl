// f32 activations in workgroup memory, and a tile format's words times them. Twins: tile_x_f32_far, tile_x_q8,
// tile_x_splits_f32.
// Binding of the entry: x. Consts: UNITS, THREADS.
//!import linear/matvec/tile_x_quads

alias XElement = vec4<f32>;

const X_QUADS = 8u * UNITS;
const X_EACH = (X_QUADS + THREADS - 1u) / THREADS;

// An invocation's part of x, loaded without a branch so that other loads can be under way meanwhile.
struct XShare {
  quads: array<vec4<f32>, X_EACH>,
}

fn load_share(local: u32) -> XShare {
  var share: XShare;
  for (var i = 0u; i < X_EACH; i++) { share.quads[i] = x[min(local + THREADS * i, X_QUADS - 1u)]; }
  return share;
}

// Called before a barrier that every invocation passes.
fn stage_share(local: u32, group: u32, share: XShare) {
  for (var i = 0u; i < X_EACH; i++) {
    let at = local + THREADS * i;
    if (at < X_QUADS) { x_quads[quad_place(at)] = share.quads[i]; }
  }
}
