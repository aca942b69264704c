// 8-bit blocks as words to send (persistent_exchange), by way of workgroup memory. Twin: persistent_block_subgroup.
//!import persistent/persistent_exchange
//!import persistent/persistent_values

var<workgroup> block_squares: array<f32, MOST_VALUES>;

// Makes a block of the 16 values of neighbouring invocations, and of their parts of the sum of squares. The first eight
// invocations get word `local % 16`, the others 0. Contains a barrier; `values` must be free, or hold these values.
fn word_of_block(local: u32, subgroup_invocation: u32, value: f32, square: f32) -> u32 {
  if (local < MOST_VALUES) {
    values[local] = value;
    block_squares[local] = square;
  }
  workgroupBarrier();
  let j = local & 15u;
  let first = local - j;
  if (j >= kBlockWords || first >= MOST_VALUES) { return 0u; }
  let scale = block_scale(first);
  if (j == kScaleWord) { return value_of(scale.x); }
  var word = 0u;
  if (j == kSquaresWord) {
    var sum = 0.0;
    for (var i = 0u; i < 16u; i++) { sum += block_squares[first + i]; }
    word = value_of(sum);
  } else {
    for (var i = 0u; i < 3u; i++) {
      word |= (u32(block_code(first + min(3u * j + i, 15u), scale.y)) & 0xffu) << (8u * i);
    }
  }
  return word;
}
