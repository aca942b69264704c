// What becomes of a stage's sums once a barrier has completed them: sent to the workgroups that need them, or added to
// the rows of the residual stream that this workgroup owns from the first layer to the last (`residual`). Fewer outputs
// than invocations are made at a time.
// Bindings of the entry: vectors, row, y_q8. Consts: OWN_ROWS, FFN, Q8_PLANE1, H_SUMS, ACTIVATE.
//!import persistent/persistent_stage
//!import persistent/persistent_x
//!import persistent/persistent_block
//!import common/activate

const kFfnBlocks = FFN / 16u;

var<workgroup> residual: array<f32, OWN_ROWS>;

// The norm's weight for this invocation's row of the residual stream, asked for before anything waits. Output and down
// product are dealt alike.
fn gain_of(local: u32, group: u32, turn: u32, norm_weight: u32) -> f32 {
  return vectors[norm_weight + min(row_of(kOutStage, group, turn, local), HIDDEN - 1u)];
}

fn send_qkv(local: u32, group: u32, turn: u32, words: u32) {
  if (is_output(kQkvStage, group, turn, local)) {
    let sum = joined_sum(kQkvStage, local / kQkvStage.rows, local);
    send(words + row_of(kQkvStage, group, turn, local), value_of(sum * norm_factor()));
  }
}

// Blocks of 16 outputs, word by word. `words`: where they go. May contain a barrier.
fn send_blocks(stage: Stage, local: u32, lane: u32, group: u32, turn: u32, value: f32, square: f32, words: u32,
               blocks: u32, count: u32) {
  let word = word_of_block(local, lane, value, square);
  let j = local & 15u;
  if (is_output(stage, group, turn, local) && j < count) {
    send(words + j * blocks + row_of(stage, group, turn, local) / 16u, word);
  }
}

// Sums added to the residual stream, and the next norm deferred: see DeferredNorm in common/forms.h.
fn put_hidden(local: u32, lane: u32, group: u32, turn: u32, gain: f32, words: u32, is_last: bool) {
  let stage = kOutStage;
  var stream = 0.0;
  if (is_output(stage, group, turn, local)) {
    let own = turn * stage.each * stage.rows + local;
    stream = residual[own] + joined_sum(stage, local / stage.rows, local);
    residual[own] = stream;
  }
  if (is_last) { return; }
  send_blocks(stage, local, lane, group, turn, stream * gain, stream * stream, words, kHiddenBlocks, kBlockWords);
}

// activate(gate) * up.
fn put_gated(local: u32, lane: u32, group: u32, turn: u32, words: u32) {
  var value = 0.0;
  if (is_output(kGateStage, group, turn, local)) {
    let factor = norm_factor();
    let index = 2u * (local / kGateStage.rows);
    value = activate(joined_sum(kGateStage, index, local) * factor) * (joined_sum(kGateStage, index + 1u, local) * factor);
  }
  send_blocks(kGateStage, local, lane, group, turn, value, 0.0, words, kFfnBlocks, kSquaresWord);
}

// The residual stream and the deferred norm behind the last layer, for other dispatches: once, so nothing here is quick.
fn store_row(local: u32, group: u32, norm_weight: u32) {
  let stage = kDownStage;
  for (var turn = 0u; turn < turns_of(stage); turn += one()) {
    workgroupBarrier();
    let own = turn * stage.each * stage.rows + local;
    let is_own = is_output(stage, group, turn, local);
    let output = row_of(stage, group, turn, local);
    let j = local & 15u;
    let first = local - j;
    if (is_own) {
      row[output] = residual[own];
      values[local] = residual[own] * gain_of(local, group, turn, norm_weight);
    }
    workgroupBarrier();
    if (is_own && j < 4u) {
      let scale = block_scale(first);
      var word = 0u;
      for (var i = 0u; i < 4u; i++) { word |= (u32(block_code(first + 4u * j + i, scale.y)) & 0xffu) << (8u * i); }
      y_q8[4u * (output / 16u) + j] = word;
    }
    if (is_own && j == 0u) {
      let scale = block_scale(first);
      let block = output / 16u;
      var sum = 0;
      var square_sum = 0.0;
      for (var i = 0u; i < 16u; i++) {
        sum += block_code(first + i, scale.y);
        square_sum += residual[own + i] * residual[own + i];
      }
      y_q8[Q8_PLANE1 + 2u * block] = bitcast<u32>(scale.x);
      y_q8[Q8_PLANE1 + 2u * block + 1u] = bitcast<u32>(scale.x * f32(sum));
      y_q8[H_SUMS + block] = bitcast<u32>(square_sum);
    }
  }
}
