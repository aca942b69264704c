// Sums over packed bytes and conversions that the weight formats share. Read next: weight_q4_k.wgsl.

// 16 unsigned bytes times 16 activations.
fn dot_u8(q: vec4<u32>, x: mat4x4<f32>) -> f32 {
  return dot(vec4<f32>(unpack4xU8(q.x)), x[0]) + dot(vec4<f32>(unpack4xU8(q.y)), x[1]) +
         dot(vec4<f32>(unpack4xU8(q.z)), x[2]) + dot(vec4<f32>(unpack4xU8(q.w)), x[3]);
}

// 16 signed bytes times 16 activations.
fn dot_i8(q: vec4<u32>, x: mat4x4<f32>) -> f32 {
  return dot(vec4<f32>(unpack4xI8(q.x)), x[0]) + dot(vec4<f32>(unpack4xI8(q.y)), x[1]) +
         dot(vec4<f32>(unpack4xI8(q.z)), x[2]) + dot(vec4<f32>(unpack4xI8(q.w)), x[3]);
}

// 16 numbers times 16 activations, and their sum.
fn dot16(w: mat4x4<f32>, x: mat4x4<f32>) -> f32 {
  return dot(w[0], x[0]) + dot(w[1], x[1]) + dot(w[2], x[2]) + dot(w[3], x[3]);
}
fn sum16(x: mat4x4<f32>) -> f32 {
  return dot(x[0] + x[1] + x[2] + x[3], vec4<f32>(1.0));
}

// Number i of plane 1, an array of f16.
fn scale_at(i: u32) -> f32 {
  let pair = unpack2x16float(scales[i >> 1u]);
  return select(pair.x, pair.y, (i & 1u) == 1u);
}
