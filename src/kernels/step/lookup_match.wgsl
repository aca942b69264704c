// Finds the place where the text's last tokens stood before. Each invocation takes every GROUPS * WORKGROUP-th place.
// Shared: the last tokens, and the workgroup's best match. Contract: lookup.h.
// Consts: WORKGROUP, GROUPS, LEAST, LONGEST.
//!import common/step_state
//!import step/draft_text
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read_write> text: DraftText;

const kNoToken = 0xFFFFFFFFu;

var<workgroup> suffix: array<u32, LONGEST>; // from the last token backwards
var<workgroup> best: atomic<u32>;

fn length_at(j: u32) -> u32 {
  var length = 0u;
  while (length < LONGEST && length <= j && text.tokens[j - length] == suffix[length]) {
    length++;
  }
  return length;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let end = text.base + state.pos;
  if (t == 0u) {
    atomicStore(&best, 0u);
  }
  for (var i = t; i < LONGEST; i += WORKGROUP) {
    var token = kNoToken;
    if (i <= end) {
      token = text.tokens[end - i];
    }
    suffix[i] = token;
  }
  workgroupBarrier(); // suffix, best
  var own = 0u;
  for (var j = group.x * WORKGROUP + t; j < end; j += GROUPS * WORKGROUP) {
    if (text.tokens[j] != suffix[0]) {
      continue;
    }
    let length = length_at(j);
    if (length >= LEAST) {
      own = max(own, (length << 27u) | j);
    }
  }
  if (own != 0u) {
    atomicMax(&best, own);
  }
  workgroupBarrier(); // the best of all
  if (t == 0u) {
    let of_group = atomicLoad(&best);
    if (of_group != 0u) {
      atomicMax(&text.best, of_group);
    }
  }
}
