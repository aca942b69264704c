// Four values as the signed bytes of a block whose largest magnitude is known (common/forms.h).

fn q8_quantise(values: vec4f, largest: f32) -> vec4i {
  let inverse = select(0.0, 127.0 / largest, largest > 0.0);
  return vec4i(clamp(round(values * inverse), vec4f(-127.0), vec4f(127.0)));
}

fn q8_word(q: vec4i) -> u32 {
  let bytes = bitcast<vec4u>(q) & vec4u(0xFFu);
  return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}
