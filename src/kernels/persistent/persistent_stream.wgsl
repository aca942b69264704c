// The residual stream inside persistent_layers. A row stays in the workgroup that makes it, from the first layer to the
// last: output and down product are dealt alike. The input of the next product is sent as 8-bit blocks, with the norm
// begun (DeferredNorm in common/forms.h). Twin: persistent_stream_joined.
// Bindings of the entry: vectors, row, y_q8. Consts: OWN_ROWS, Q8_PLANE1, H_SUMS.
//!import persistent/persistent_outputs
//!import common/q8_block

var<workgroup> residual: array<f32, OWN_ROWS>;

// The next norm's weight for this invocation's row.
struct Gains {
  next: f32,
}

// Asked for before anything waits.
fn gains_of(local: u32, group: u32, step: Step, place: Place) -> Gains {
  return Gains(hidden_vector(local, group, step.turn, place.gain));
}

fn begin_stream(local: u32, group: u32) {
  let own = kOutStage;
  for (var turn = 0u; turn < turns_of(own); turn += one()) {
    if (is_output(own, group, turn, local)) {
      residual[turn * own.each * own.rows + local] = row[row_of(own, group, turn, local)];
    }
  }
  begin_x(local, table.first_norm);
}

// x of the dispatch's first product, made of the residual stream itself. norm_weight: first element in `vectors`.
fn begin_x(local: u32, norm_weight: u32) {
  var squares = 0.0;
  for (var block = local; block < kHiddenBlocks; block += THREADS * one()) {
    var quads: array<vec4<f32>, 4>;
    var largest = 0.0;
    for (var i = 0u; i < 4u; i++) {
      let at = 16u * block + 4u * i;
      let x = vec4<f32>(row[at], row[at + 1u], row[at + 2u], row[at + 3u]);
      squares += dot(x, x);
      let gain = norm_weight + at;
      quads[i] = x * vec4<f32>(vectors[gain], vectors[gain + 1u], vectors[gain + 2u], vectors[gain + 3u]);
      let most = abs(quads[i]);
      largest = max(largest, max(max(most.x, most.y), max(most.z, most.w)));
    }
    put_block(block,
              vec4<u32>(q8_word(q8_quantise(quads[0], largest)), q8_word(q8_quantise(quads[1], largest)),
                        q8_word(q8_quantise(quads[2], largest)), q8_word(q8_quantise(quads[3], largest))),
              largest / 127.0);
  }
  put_norm_part(local, squares);
  workgroupBarrier();
}

// x of a stage's first turn.
fn bring_x(local: u32, layer: u32, number: u32, gains: Gains) {
  if (layer > 0u || number > kQkv) {
    let input = input_of(layer, number);
    receive_x(local, input.at, input.blocks, input.is_stream);
  }
}

// Sums added to the residual stream, and the next norm begun.
fn put_hidden(local: u32, subgroup_invocation: u32, group: u32, turn: u32, gains: Gains, bias: f32, words: u32, is_last: bool) {
  let stage = kOutStage;
  var stream = 0.0;
  if (is_output(stage, group, turn, local)) {
    let own = turn * stage.each * stage.rows + local;
    stream = residual[own] + reduced_sum(stage, local / stage.rows, local);
    if (HAS_OUT_BIAS || HAS_DOWN_BIAS) { stream += bias; }
    residual[own] = stream;
  }
  if (is_last) { return; }
  send_blocks(stage, local, subgroup_invocation, group, turn, stream * gains.next, stream * stream, words, kHiddenBlocks, kBlockWords);
}

// The residual stream and the deferred norm after the last layer, for other dispatches: once, so nothing here is quick.
fn end_stream(local: u32, group: u32) {
  let norm_weight = place_of(table.count - 1u, kDown).gain;
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
      values[local] = residual[own] * hidden_vector(local, group, turn, norm_weight);
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
