// Puts a head of attention, inside persistent_layers, into `values`, for send_head(). In the place of attention_quad_y,
// with its function.
//!import persistent/persistent_values

fn put_quad(split: u32, head: u32, quad: u32, found: Quad, is_active: bool) {
  if (is_active) {
    for (var i = 0u; i < 4u; i++) { values[4u * quad + i] = found.weighted[i] / found.sum; }
  }
}
