// Layers that differ: some see fewer keys and rotate by another table. ATTENTION_FACTOR is 1. Twin with the same
// functions: persistent_alike; persistent_range goes with it.

// The layer is passed as attention's row, since compilers know that this value is uniform: a barrier follows code that
// depends on the window. Heads are counted on from those of the rows before.
fn row_of_layer(layer: u32) -> u32 { return layer; }
fn head_of_layer(head: u32) -> u32 { return head % N_HEADS; }

var<private> angles_at: u32;  // in `angles`
var<private> angle_factor: f32;

fn set_rotation(first_angle: u32, factor: f32) {
  angles_at = first_angle;
  angle_factor = factor;
}
fn angle_place(pair: u32) -> u32 { return angles_at + pair; }
fn lengthen_pair(pair: u32, pair_values: vec2f) -> vec2f {
  return select(pair_values, pair_values * angle_factor, pair < ROTARY_DIM / 2u);
}
