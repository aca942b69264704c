// x in 8-bit blocks, made here of splits of attention: see tile_splits. An invocation joins its columns, then makes every
// THREADS-th block. Barrier: joined. Twins: tile_x_q8, tile_x_joined, tile_x_splits_f32.
//!import matvec/tile_x_blocks
//!import matvec/tile_splits

var<workgroup> joined: array<vec4<f32>, kXQuads>;

// Before a barrier that every invocation passes.
fn stage_share(local: u32, group: u32, share: XShare) {
  let used = used_splits(share.keys);
  for (var e = 0u; e < QUADS_EACH; e++) {
    let quad = local + THREADS * e;
    let value = joined_quad(share, e, min(quad, kXQuads - 1u), used);
    if (quad < kXQuads) { joined[quad] = value; }
  }
  workgroupBarrier();
  for (var block = local; block < kBlocks; block += THREADS) {
    stage_block(block,
                Sixteen(joined[4u * block], joined[4u * block + 1u], joined[4u * block + 2u], joined[4u * block + 3u]));
  }
}
