// The residual stream inside persistent_layers if norms stand after the branches (AddRmsNorm in common/forms.h): a
// branch's sum of squares needs all its rows before one may join the residual. The rows are sent before the norm, and
// each workgroup, which reads them all anyway, keeps the whole residual stream, adds up the squares, and joins and
// quantises the input of its next product. All do this from the same words in the same order, so that every workgroup
// has the same bits and no second exchange is needed. Twin: persistent_stream.
// An invocation has the same quads of four rows from the first layer to the last: number local + e * THREADS; four
// neighbours have a block. Row i of a branch is word i % 4 * kQuads + i / 4, so that neighbours read neighbours.
// Bindings of the entry: vectors, row, y_q8. Consts: Q8_PLANE1, H_SUMS. SUBGROUP is 4 or more.
// Barriers: before, as in persistent_x; the branch's squares; x is complete.
//!import persistent/persistent_outputs
//!import common/q8_block

const kQuads = HIDDEN / 4u;
const kQuadsEach = (kQuads + THREADS - 1u) / THREADS;

var<workgroup> residual: array<vec4<f32>, kQuads>;
var<workgroup> branch_parts: array<f32, kNormParts>;

// Weights of the norm after the branch and of the one that follows, for the invocation's quads.
struct Gains {
  branch: array<vec4<f32>, kQuadsEach>,
  next: array<vec4<f32>, kQuadsEach>,
}

fn quad_of_vectors(first: u32, quad: u32) -> vec4<f32> {
  let at = first + 4u * min(quad, kQuads - 1u);
  return vec4<f32>(vectors[at], vectors[at + 1u], vectors[at + 2u], vectors[at + 3u]);
}

fn all_gains(local: u32, place: Place) -> Gains {
  var gains: Gains;
  for (var e = 0u; e < kQuadsEach; e++) {
    gains.branch[e] = quad_of_vectors(place.branch_gain, local + e * THREADS);
    gains.next[e] = quad_of_vectors(place.gain, local + e * THREADS);
  }
  return gains;
}

// Asked for before anything waits.
fn gains_of(local: u32, group: u32, step: Step, place: Place) -> Gains {
  if (step.turn == 0u && (step.number == kQkv || step.number == kGate)) { return all_gains(local, place); }
  return Gains();
}

fn begin_stream(local: u32, group: u32) {
  for (var quad = local; quad < kQuads; quad += THREADS * one()) {
    let at = 4u * quad;
    residual[quad] = vec4<f32>(row[at], row[at + 1u], row[at + 2u], row[at + 3u]);
  }
}

// The invocation's quads of a branch, zero where it has none. A poll loads all words.
fn receive_branch(local: u32, at: u32) -> array<vec4<f32>, kQuadsEach> {
  var words: array<vec4<u32>, kQuadsEach>;
  var seen = 0u;
  if (IS_LAVAPIPE) { _ = receive_f32(at + min(local, kQuads - 1u)); }  // with fewer additions, which are counted there
  loop {
    seen = 0u;
    for (var e = 0u; e < kQuadsEach; e++) {
      let quad = local + e * THREADS;
      if (quad < kQuads) {
        words[e] = vec4<u32>(look(at + quad), look(at + kQuads + quad), look(at + 2u * kQuads + quad),
                             look(at + 3u * kQuads + quad)) ^ vec4<u32>(tag);
      }
      seen |= (words[e].x | words[e].y) | (words[e].z | words[e].w);
    }
    if (!is_stale(seen) || spins_left == 0u) { break; }
    wait_again(seen, 5u * kQuadsEach);  // the inner loop's iterations too
  }
  if (is_stale(seen)) { spins_left = 0u; }
  var branch: array<vec4<f32>, kQuadsEach>;
  for (var e = 0u; e < kQuadsEach; e++) {
    branch[e] = vec4<f32>(number_of(words[e].x), number_of(words[e].y), number_of(words[e].z), number_of(words[e].w));
  }
  return branch;
}

fn put_branch_part(local: u32, squares: f32) {
  var sum = squares;
  for (var distance = 1u; distance < SUBGROUP; distance <<= 1u) { sum += subgroupShuffleXor(sum, distance); }
  if (local % SUBGROUP == 0u) { branch_parts[local / SUBGROUP] = sum; }
}

fn branch_factor() -> f32 {
  var sum = 0.0;
  for (var i = 0u; i < kNormParts; i++) { sum += branch_parts[i]; }
  return inverseSqrt(sum / f32(HIDDEN) + NORM_EPS);
}

// x += norm(branch), and the input of the next product. Without a branch only the input: a dispatch's first product.
fn join_x(local: u32, at: u32, has_branch: bool, gains: Gains) {
  workgroupBarrier();
  var held = gains;
  var branch: array<vec4<f32>, kQuadsEach>;
  if (has_branch) { branch = receive_branch(local, at); }
  var squares = 0.0;
  for (var e = 0u; e < kQuadsEach; e++) { squares += dot(branch[e], branch[e]); }
  put_branch_part(local, squares);
  workgroupBarrier();
  let factor = branch_factor();
  squares = 0.0;
  for (var e = 0u; e < kQuadsEach; e++) {
    let quad = local + e * THREADS;
    let is_there = quad < kQuads;
    var x = vec4<f32>();
    if (is_there) {
      x = residual[quad] + branch[e] * factor * held.branch[e];
      residual[quad] = x;
    }
    squares += dot(x, x);
    let normed = x * held.next[e];
    let most = abs(normed);
    var largest = max(max(most.x, most.y), max(most.z, most.w));
    largest = max(largest, subgroupShuffleXor(largest, 1u));
    largest = max(largest, subgroupShuffleXor(largest, 2u));
    let word = q8_word(q8_quantise(normed, largest));
    let codes = vec4<u32>(word, subgroupShuffleXor(word, 1u), subgroupShuffleXor(word, 2u), subgroupShuffleXor(word, 3u));
    if (is_there && local % 4u == 0u) { put_block(quad / 4u, codes, largest / 127.0); }
  }
  put_norm_part(local, squares);
  workgroupBarrier();
}

// x of a stage's first turn.
fn bring_x(local: u32, layer: u32, number: u32, gains: Gains) {
  let input = input_of(layer, number);
  if (input.is_stream) {
    join_x(local, input.at, layer > 0u || number > kQkv, gains);
  } else {
    receive_x(local, input.at, input.blocks, false);
  }
}

// The branch's rows are sent; those of a dispatch's last layer to end_stream().
fn put_hidden(local: u32, subgroup_invocation: u32, group: u32, turn: u32, gains: Gains, bias: f32, words: u32, is_last: bool) {
  let stage = kOutStage;
  if (is_output(stage, group, turn, local)) {
    var sum = reduced_sum(stage, local / stage.rows, local);
    if (HAS_OUT_BIAS || HAS_DOWN_BIAS) { sum += bias; }
    let output = row_of(stage, group, turn, local);
    send(words + output % 4u * kQuads + output / 4u, value_of(sum));
  }
}

// The residual stream and the deferred norm after the last layer, for other dispatches: once, so nothing here is quick.
// Sixteen invocations have a block.
fn end_stream(local: u32, group: u32) {
  let last = table.count - 1u;
  join_x(local, layer_words(last) + DOWN_AT, true, all_gains(local, place_of(last, kDown)));
  let j = local % 16u;
  for (var block = group + local / 16u * GROUPS; block < kHiddenBlocks; block += GROUPS * (THREADS / 16u) * one()) {
    row[16u * block + j] = residual[4u * block + j / 4u][j % 4u];
    if (j < 4u) { y_q8[4u * block + j] = x_codes[block][j]; }
    if (j == 4u) {
      y_q8[Q8_PLANE1 + 2u * block] = bitcast<u32>(x_factors[block].x);
      y_q8[Q8_PLANE1 + 2u * block + 1u] = bitcast<u32>(x_factors[block].y);
    }
    if (j == 5u) {
      var squares = 0.0;
      for (var i = 0u; i < 4u; i++) { squares += dot(residual[4u * block + i], residual[4u * block + i]); }
      y_q8[H_SUMS + block] = bitcast<u32>(squares);
    }
  }
}
