// A workgroup's ROWS outputs, one of each of its first invocations, as 8-bit blocks of 16 (common/forms.h).
// Scalars in workgroup memory, not vectors: a write of one component may write the whole vector (WGSL, Metal, D3D12).
// Binding of the entry: y_q8. Consts: Q8_PLANE1, ROWS (a multiple of 16). Twin: tile_block_subgroup.
//!import common/q8_block

const kQuads = ROWS / 4u;

var<workgroup> block_values: array<f32, ROWS>;
var<workgroup> block_sums: array<i32, kQuads>;
var<workgroup> block_parts: array<f32, ROWS>;

fn block_quad(i: u32) -> vec4<f32> {
  return vec4<f32>(block_values[4u * i], block_values[4u * i + 1u], block_values[4u * i + 2u], block_values[4u * i + 3u]);
}

// `group`: of ROWS outputs. Contains barriers: every invocation of the workgroup calls it.
fn store_blocks(local: u32, group: u32, value: f32) {
  if (local < ROWS) { block_values[local] = value; }
  workgroupBarrier();  // four invocations take four values each, and the largest of all
  var d = 0.0;
  if (local < kQuads) {
    let first = local & ~3u;
    let most = max(max(abs(block_quad(first)), abs(block_quad(first + 1u))),
                   max(abs(block_quad(first + 2u)), abs(block_quad(first + 3u))));
    let largest = max(max(most.x, most.y), max(most.z, most.w));
    d = largest / 127.0;
    let q = q8_quantise(block_quad(local), largest);
    y_q8[kQuads * group + local] = q8_word(q);
    block_sums[local] = q.x + q.y + q.z + q.w;
  }
  workgroupBarrier();  // block_sums
  if (local < kQuads && (local & 3u) == 0u) {
    let sum = (block_sums[local] + block_sums[local + 1u]) + (block_sums[local + 2u] + block_sums[local + 3u]);
    let at = Q8_PLANE1 + 2u * ((kQuads * group + local) >> 2u);
    y_q8[at] = bitcast<u32>(d);
    y_q8[at + 1u] = bitcast<u32>(d * f32(sum));
  }
}

// The sum over each block of 16 of what the first ROWS invocations bring; valid in the first invocation of each.
// Contains a barrier: every invocation of the workgroup calls it.
fn block_total(local: u32, value: f32) -> f32 {
  if (local < ROWS) { block_parts[local] = value; }
  workgroupBarrier();
  var total = 0.0;
  if (local < ROWS) {
    for (var i = 0u; i < 16u; i++) { total += block_parts[(local & ~15u) + i]; }
  }
  return total;
}
