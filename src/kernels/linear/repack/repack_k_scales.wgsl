// Scale and minimum of a group of 32 in q4_k and q5_k (formats/quant/k_scales.h): f16 d and dmin, then 12 bytes.
//!import linear/repack/repack_bytes
//!import linear/repack/repack_half

fn group_halves(block: u32, group: u32) -> u32 {
  let d = word_at(block);
  let shift = 8u * (group & 3u);
  let s = word_at(block + 4u) >> shift;
  let m = word_at(block + 8u) >> shift;
  var scale = s & 63u;
  var minimum = m & 63u;
  if (group >= 4u) {
    let low = word_at(block + 12u) >> shift;
    scale = (low & 15u) | (((s >> 6u) & 3u) << 4u);
    minimum = ((low >> 4u) & 15u) | (((m >> 6u) & 3u) << 4u);
  }
  return scaled_half(d & 0xFFFFu, i32(scale)) | (scaled_half(d >> 16u, i32(minimum)) << 16u);
}
