// f32 activations straight from their buffer, for rows too long for workgroup memory. Twin of tile_x_f32.
//!import linear/matvec/unit_x_f32

struct XShare {
  none: u32,
}

fn load_share(local: u32) -> XShare { return XShare(0u); }
fn stage_share(local: u32, group: u32, share: XShare) {}

fn dot_unit(w: Words, u: u32) -> f32 {
  let v = load_x(0u, u);
  return words_dot(w, v.first, v.second, v.sums);
}
