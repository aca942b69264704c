// Writes activations as q8 (layout: common/activation.h) from a workgroup of WORKGROUP invocations (a multiple of
// 8), of which each brings four consecutive values: eight invocations make one block of 32.
// The kernel declares y_q8: array<u32>; Q8_PLANE1 is the first word of plane 1.
// Barriers: the first after the maxima are known; the second after the sums, which also keeps the next call's
// maxima from overtaking this one's readers. Must be called in uniform control flow.
var<workgroup> q8_maxima: array<f32, WORKGROUP>;
var<workgroup> q8_sums: array<i32, WORKGROUP>;

// `word`: (row * k + column) / 4 of the four values. An invocation past the end brings zeros and active = false;
// rows hold whole blocks, so that all eight of a block are alike.
fn store_q8(t: u32, word: u32, values: vec4f, is_active: bool) {
  let magnitudes = abs(values);
  q8_maxima[t] = max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
  workgroupBarrier();
  let first = t & ~7u;
  var largest = 0.0;
  for (var i = 0u; i < 8u; i++) {
    largest = max(largest, q8_maxima[first + i]);
  }
  let d = largest / 127.0;
  let inverse = select(0.0, 127.0 / largest, largest > 0.0);
  let q = vec4i(clamp(round(values * inverse), vec4f(-127.0), vec4f(127.0)));
  q8_sums[t] = q.x + q.y + q.z + q.w;
  workgroupBarrier();
  if (is_active) {
    let bytes = bitcast<vec4u>(q) & vec4u(0xFFu);
    y_q8[word] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
    if (t == first) {
      var sum = 0;
      for (var i = 0u; i < 8u; i++) {
        sum += q8_sums[first + i];
      }
      let at = Q8_PLANE1 + word / 8u * 2u;
      y_q8[at] = bitcast<u32>(d);
      y_q8[at + 1u] = bitcast<u32>(d * f32(sum));
    }
  }
}
