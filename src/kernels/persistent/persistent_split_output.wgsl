// Where attention puts a split's part of a head inside persistent_layers: words for the workgroup that reduces it
// (persistent_attention_splits). In the place of attention_quad_y, with its function. Set before: parts_at.
// Words of a layer: [SPLITS, N_HEADS, HEAD_DIM] weighted values, then [SPLITS, N_HEADS] pairs (highest logit, sum).
// Value i of quad q of a head is number i * (HEAD_DIM / 4) + q, so that neighbours write neighbours.
//!import persistent/persistent_exchange
//!import persistent/persistent_alike

const kSplitPairs = SPLITS * N_HEADS * HEAD_DIM;

var<private> parts_at: u32;  // in `exchange`

fn put_part(split: u32, head: u32, quad: u32, weighted: vec4f, highest: f32, sum: f32) {
  let at = split * N_HEADS + head;
  for (var i = 0u; i < 4u; i++) { send(parts_at + at * HEAD_DIM + i * (HEAD_DIM / 4u) + quad, value_of(weighted[i])); }
  if (quad == 0u) {
    send(parts_at + kSplitPairs + 2u * at, value_of(highest));
    send(parts_at + kSplitPairs + 2u * at + 1u, value_of(sum));
  }
}

// The values sent are relative to the highest logit as it arrives, in fewer bits.
fn put_quad(split: u32, head: u32, quad: u32, found: Quad, is_active: bool) {
  if (!is_active) { return; }
  let highest = number_of(value_of(found.highest));
  let factor = exp2(found.highest - highest);
  put_part(split, head_of_layer(head), quad, found.weighted * factor, highest, found.sum * factor);
}
