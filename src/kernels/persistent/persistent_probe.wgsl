// Counts how many workgroups of WORKGROUP invocations and SHARED words of workgroup memory are co-resident on this
// device. SHARED is at least WORKGROUP; the array is touched, so that the compiler keeps it.
//!import persistent/persistent_arrive

@group(0) @binding(0) var<storage, read_write> exchange: array<atomic<u32>>;

var<workgroup> shared_words: array<u32, SHARED>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  shared_words[local * (SHARED / WORKGROUP)] = local;
  workgroupBarrier();
  if (local == shared_words[0]) { arrive(groups.x); }
  workgroupBarrier();
}
