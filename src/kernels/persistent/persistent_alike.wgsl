// Layers that all see the same keys and rotate alike: the consts WINDOW and ATTENTION_FACTOR say how. Twin with the
// same functions: persistent_sliding.

// Attention's name for its row; keys_of_row() finds the keys by it.
fn row_of_layer(layer: u32) -> u32 { return 0u; }
fn head_of_layer(head: u32) -> u32 { return head; }

fn set_rotation(first_angle: u32, factor: f32) {}
fn angle_place(pair: u32) -> u32 { return pair; }
fn lengthen_pair(pair: u32, pair_values: vec2f) -> vec2f { return pair_values; }
