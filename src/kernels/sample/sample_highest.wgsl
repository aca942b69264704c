// The highest l of a row, from the maxima of the segments (segment_max, which the kernel declares).
// Must be called in uniform control flow.
var<workgroup> maxima: array<f32, WORKGROUP>;

fn highest_l(t: u32, place: Place) -> f32 {
  var highest = -kLimit;
  for (var i = t; i < SEGMENTS; i += WORKGROUP) {
    highest = max(highest, segment_max[place.row * SEGMENTS + i]);
  }
  maxima[t] = highest;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (t < half) {
      maxima[t] = max(maxima[t], maxima[t + half]);
    }
    workgroupBarrier(); // the next level reads what this one wrote
  }
  return maxima[0];
}
