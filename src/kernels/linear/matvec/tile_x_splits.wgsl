// x in 8-bit blocks, made here of splits of attention: see tile_splits. An invocation reduces its columns, then makes
// every THREADS-th block. Barrier: reduced. Twins: tile_x_q8, tile_x_add_norm, tile_x_splits_f32.
//!import linear/matvec/tile_x_blocks
//!import linear/matvec/tile_splits

var<workgroup> reduced: array<vec4<f32>, kXQuads>;

// Called before a barrier that every invocation passes.
fn stage_share(local: u32, group: u32, share: XShare) {
  let used = used_splits(share.keys);
  for (var e = 0u; e < QUADS_EACH; e++) {
    let quad = local + THREADS * e;
    let value = reduced_quad(share, e, min(quad, kXQuads - 1u), used);
    if (quad < kXQuads) { reduced[quad] = value; }
  }
  workgroupBarrier();
  for (var block = local; block < kBlocks; block += THREADS) {
    stage_block(block,
                Sixteen(reduced[4u * block], reduced[4u * block + 1u], reduced[4u * block + 2u], reduced[4u * block + 3u]));
  }
}
