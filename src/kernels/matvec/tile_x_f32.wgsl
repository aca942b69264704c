// f32 activations straight from their buffer, which may be too long for workgroup memory, and a tile format's words
// times them. Twin of tile_x_q8.
//!import matvec/unit_x_f32

fn stage_x(local: u32) {}

fn dot_unit(w: Words, u: u32) -> f32 {
  let v = load_x(0u, u);
  return words_dot(w, v.first, v.second, v.sums);
}
