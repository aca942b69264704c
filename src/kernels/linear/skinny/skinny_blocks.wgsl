// A workgroup's gated outputs as 8-bit blocks (common/forms.h), which those of a row fill. Bindings of the entry:
// skinny_bindings. Consts: Q8_PLANE1, THREADS, and those of linear/skinny/skinny_finish.
//!import linear/skinny/skinny_finish
//!import common/q8_block

const kBlock = 16u;
const kGroupBlocks = GROUP_ROWS / kBlock;  // of a row

fn block_quad(at: u32) -> vec4<f32> {
  return vec4<f32>(block_values[at], block_values[at + 1u], block_values[at + 2u], block_values[at + 3u]);
}

// Contains a barrier: every invocation of the workgroup calls it. An invocation makes four bytes at a time, and looks
// at all 16 values for the largest.
fn store_blocks(group: u32, local: u32, rows: u32) {
  workgroupBarrier();  // block_values
  for (var i = local; i < rows * kGroupBlocks * 4u; i += THREADS) {
    let row = i / (4u * kGroupBlocks);
    let block = i / 4u % kGroupBlocks;
    let first = row * GROUP_ROWS + block * kBlock;
    let a = block_quad(first);
    let b = block_quad(first + 4u);
    let c = block_quad(first + 8u);
    let d = block_quad(first + 12u);
    let most = max(max(abs(a), abs(b)), max(abs(c), abs(d)));
    let largest = max(max(most.x, most.y), max(most.z, most.w));
    let to = (first_x_row + row) * (OUTPUTS / kBlock) + group * kGroupBlocks + block;
    y_q8[4u * to + i % 4u] = q8_word(q8_quantise(block_quad(first + i % 4u * 4u), largest));
    if (i % 4u == 0u) {
      let q = (q8_quantise(a, largest) + q8_quantise(b, largest)) + (q8_quantise(c, largest) + q8_quantise(d, largest));
      let factor = largest / 127.0;
      y_q8[Q8_PLANE1 + 2u * to] = bitcast<u32>(factor);
      y_q8[Q8_PLANE1 + 2u * to + 1u] = bitcast<u32>(factor * f32((q.x + q.y) + (q.z + q.w)));
    }
  }
}
