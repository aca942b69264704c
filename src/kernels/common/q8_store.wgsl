// Writes activations as q8 (layout: common/forms.h) from a workgroup of WORKGROUP invocations (a multiple of 4). Each
// brings four consecutive values: four invocations make one block of 16.
// The kernel declares y_q8: array<u32>; Q8_PLANE1 is the first word of plane 1.
// Barriers: the first after the maxima are known; the second after the sums, which also keeps the next call's maxima
// from overtaking this one's readers. Must be called in uniform control flow.
//!import common/q8_block
var<workgroup> q8_maxima: array<f32, WORKGROUP>;
var<workgroup> q8_sums: array<i32, WORKGROUP>;

// `word`: (row * k + column) / 4 of the four values. An invocation past the end brings zeros and active = false;
// rows hold whole blocks, so that all four of a block are alike.
fn store_q8(t: u32, word: u32, values: vec4f, is_active: bool) {
  let magnitudes = abs(values);
  q8_maxima[t] = max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
  workgroupBarrier();
  let first = t & ~3u;
  var largest = 0.0;
  for (var i = 0u; i < 4u; i++) {
    largest = max(largest, q8_maxima[first + i]);
  }
  let d = largest / 127.0;
  let q = q8_quantise(values, largest);
  q8_sums[t] = q.x + q.y + q.z + q.w;
  workgroupBarrier();
  if (is_active) {
    y_q8[word] = q8_word(q);
    if (t == first) {
      var sum = 0;
      for (var i = 0u; i < 4u; i++) {
        sum += q8_sums[first + i];
      }
      let at = Q8_PLANE1 + word / 4u * 2u;
      y_q8[at] = bitcast<u32>(d);
      y_q8[at + 1u] = bitcast<u32>(d * f32(sum));
    }
  }
}
