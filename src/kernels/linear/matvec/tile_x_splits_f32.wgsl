// x in f32, made here of splits of attention: see tile_splits. Twins: tile_x_f32, tile_x_splits.
//!import linear/matvec/tile_x_quads
//!import linear/matvec/tile_splits

// Called before a barrier that every invocation passes.
fn stage_share(local: u32, group: u32, share: XShare) {
  let used = used_splits(share.keys);
  for (var e = 0u; e < QUADS_EACH; e++) {
    let quad = local + THREADS * e;
    let value = reduced_quad(share, e, min(quad, kXQuads - 1u), used);
    if (quad < kXQuads) { x_quads[quad_place(quad)] = value; }
  }
}
