// Row x_row of f32 activations straight from their buffer, and a tile format's words times them. Twin: expert_x_q8.
// Bindings of the entry: x, x_scales (unused). Const: UNITS.
//!import linear/matvec/unit_x_f32

var<private> x_row: u32;  // set by the entry

struct XShare {
  none: u32,
}

fn load_share(local: u32) -> XShare { return XShare(0u); }
fn stage_share(local: u32, group: u32, share: XShare) {}

fn dot_unit(w: Words, u: u32) -> f32 {
  let v = load_x(x_row, u);
  return words_dot(w, v.first, v.second, v.sums);
}
