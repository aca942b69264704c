// Counts how many workgroups of a dispatch are co-resident: each arrives at a counter and waits, for a bounded time,
// until all of `count` have. The first to reach its spin limit closes the counter and notes how many had arrived; no
// workgroup had left before that. Later ones, which come since others gave up, are not counted. Count and door are one
// word, as WGSL orders no two.
// The other invocations of a workgroup must wait at a barrier: those that have ended leave room for workgroups that
// would not fit beside whole ones (an H200 let 24 of 512 invocations run where 4 fit).
// Binding of the entry: exchange, whose first words are named here. Const: SPIN_LIMIT (polls).
const kFault = 0u;      // 1: a wait of persistent_layers was in vain
const kMode = 1u;       // kModeProbe: a dispatch only counts its workgroups
const kArrived = 2u;    // workgroups, and kClosed
const kCoResident = 4u;   // the answer; 0: not known
// From word kExchangeCounters on (layers.h): the dispatches that each workgroup has ended.

const kModeProbe = 1u;
const kClosed = 0x80000000u;

// One invocation of each workgroup calls it, between two barriers of all.
fn arrive(count: u32) {
  var seen = atomicAdd(&exchange[kArrived], 1u) + 1u;
  for (var i = 0u; i < SPIN_LIMIT && seen < count; i++) {
    // adding nothing: a plain atomic load may be moved out of the loop (see wait_again() of persistent_exchange)
    seen = atomicAdd(&exchange[kArrived], 0u);
  }
  seen = atomicOr(&exchange[kArrived], kClosed);
  if (seen < kClosed) { atomicStore(&exchange[kCoResident], min(seen, count)); }
}
