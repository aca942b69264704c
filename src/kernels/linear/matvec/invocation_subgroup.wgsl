// As invocation, numbered so that neighbours are neighbouring invocations of a subgroup: WGSL does not promise that of
// local_invocation_index.

struct Invocation {
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_size) size: u32,
  @builtin(subgroup_invocation_id) subgroup_invocation: u32,
}

fn local_of(own: Invocation) -> u32 { return own.subgroup * own.size + own.subgroup_invocation; }
