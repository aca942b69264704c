// Values that become 8-bit blocks, in workgroup memory. Const: MOST_VALUES.

var<workgroup> values: array<f32, MOST_VALUES>;

// The scale of the block of 16 that begins at values[first], and 127 / its largest.
fn block_scale(first: u32) -> vec2<f32> {
  var largest = 0.0;
  for (var i = 0u; i < 16u; i++) { largest = max(largest, abs(values[first + i])); }
  return vec2<f32>(largest / 127.0, select(0.0, 127.0 / largest, largest > 0.0));
}

fn block_code(i: u32, inverse: f32) -> i32 { return i32(clamp(round(values[i] * inverse), -127.0, 127.0)); }
