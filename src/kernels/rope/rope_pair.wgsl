// The rotation of one pair of a head, the heads padded to whole eights. Consts: ROTARY_DIM, INTERLEAVED,
// ATTENTION_FACTOR. `step`: the pair's entry of the table. See rope.h for the phase's fixed point.
//!import common/mul_wide
//!import common/sincos
//!import rope/rope_place

// The two dimensions of a pair: pairs beyond the rotary ones are neighbours.
fn pair_places(pair: u32) -> vec2u {
  if (INTERLEAVED || pair >= ROTARY_DIM / 2u) {
    return vec2u(2u * pair, 2u * pair + 1u);
  }
  return vec2u(pair, pair + ROTARY_DIM / 2u);
}

fn rotate_pair(row: u32, values: vec2f, pair: u32, position: u32, step: vec2u) -> vec2f {
  if (pair >= ROTARY_DIM / 2u) {
    return values;
  }
  let place = place_of_pair(row, position, pair);
  let turn = cos_sin(mul_wide(place, step.x).y + place * step.y) * ATTENTION_FACTOR;
  return vec2f(values.x * turn.x - values.y * turn.y, values.y * turn.x + values.x * turn.y);
}
