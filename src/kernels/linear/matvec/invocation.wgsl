// The number of an invocation in its workgroup, for entries that import linear/matvec/tile_block. Twin:
// invocation_subgroup.

struct Invocation {
  @builtin(local_invocation_index) index: u32,
}

fn local_of(own: Invocation) -> u32 { return own.index; }
