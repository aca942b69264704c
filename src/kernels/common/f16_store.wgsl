// Writes activations as f16 in tiles, four consecutive numbers of a row at a time: common/f16_quad. The kernel declares
// y_f16: array<vec2<u32>>.
//!import common/f16_quad

fn store_f16_quad(row: u32, column: u32, values: vec4<f32>) { y_f16[f16_quad_at(row, column)] = f16_quad(values); }
