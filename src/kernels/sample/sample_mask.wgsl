// Sampling, before everything else: a sequence's mask sets the logits of the tokens that it leaves out to -infinity.
// One workgroup takes SEGMENT consecutive tokens of a row. A slot's mask is a word, 0 if it has none, and a bit a
// token.
//!import sample/sample_place
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> mask: array<u32>;
@group(0) @binding(2) var<storage, read_write> logits: array<u32>; // bits

const kMinusInfinity = 0xFF800000u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  if (!chooses(group.y)) {
    return;
  }
  let place = place_of(group.y);
  let mask_at = place.slot * MASK_WORDS;
  if (mask[mask_at] == 0u) {
    return;
  }
  let first = group.x * SEGMENT;
  let end = min(first + SEGMENT, VOCAB_SIZE);
  for (var id = first + t; id < end; id += WORKGROUP) {
    if (((mask[mask_at + 1u + id / 32u] >> (id % 32u)) & 1u) == 0u) {
      logits[place.row * VOCAB_SIZE + id] = kMinusInfinity;
    }
  }
}
