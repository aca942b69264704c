// Sends the sums of q, k and v and of the gated stage, once a barrier has completed them, to the workgroups that need
// them. persistent_stream handles the sums of the others. Fewer outputs than invocations are made at a time.
// Binding of the entry: vectors. Consts: FFN, ACTIVATE, HAS_QKV_BIAS, HAS_OUT_BIAS, HAS_GATE_BIAS, HAS_DOWN_BIAS.
//!import persistent/persistent_stage
//!import persistent/persistent_x
//!import persistent/persistent_block
//!import common/activate

const kFfnBlocks = FFN / 16u;

// The element for this invocation's row, in a vector of the residual stream's length. Output and down product are dealt
// alike.
fn hidden_vector(local: u32, group: u32, turn: u32, first: u32) -> f32 {
  return vectors[first + min(row_of(kOutStage, group, turn, local), HIDDEN - 1u)];
}

// Row `row` of q, k and v, or the last: those from the stage's item `split` on have their biases elsewhere.
fn qkv_bias(row: u32, place: Place, second: u32) -> f32 {
  let near = min(row, kQkvStage.items * kQkvStage.rows - 1u);
  return vectors[select(place.bias, second, near >= place.split * kQkvStage.rows) + near];
}

fn send_qkv(local: u32, group: u32, turn: u32, bias: f32, words: u32) {
  if (is_output(kQkvStage, group, turn, local)) {
    var sum = reduced_sum(kQkvStage, local / kQkvStage.rows, local) * norm_factor();
    if (HAS_QKV_BIAS) { sum += bias; }
    send(words + row_of(kQkvStage, group, turn, local), value_of(sum));
  }
}

// Blocks of 16 outputs, word by word. `words`: where they go. May contain a barrier.
fn send_blocks(stage: Stage, local: u32, subgroup_invocation: u32, group: u32, turn: u32, value: f32, square: f32, words: u32,
               blocks: u32, count: u32) {
  let word = word_of_block(local, subgroup_invocation, value, square);
  let j = local & 15u;
  if (is_output(stage, group, turn, local) && j < count) {
    send(words + j * blocks + row_of(stage, group, turn, local) / 16u, word);
  }
}

// The biases of a gate and of its up.
fn gate_biases(row: u32, first: u32) -> vec2<f32> {
  let near = first + min(row, FFN - 1u);
  return vec2<f32>(vectors[near], vectors[near + FFN]);
}

// activate(gate) * up.
fn put_gated(local: u32, subgroup_invocation: u32, group: u32, turn: u32, biases: vec2<f32>, words: u32) {
  var value = 0.0;
  if (is_output(kGateStage, group, turn, local)) {
    let factor = norm_factor();
    let index = 2u * (local / kGateStage.rows);
    var gate = reduced_sum(kGateStage, index, local) * factor;
    var up = reduced_sum(kGateStage, index + 1u, local) * factor;
    if (HAS_GATE_BIAS) {
      gate += biases.x;
      up += biases.y;
    }
    value = activate(gate) * up;
  }
  send_blocks(kGateStage, local, subgroup_invocation, group, turn, value, 0.0, words, kFfnBlocks, kSquaresWord);
}
