// Twin of rope_pair for rows of one sequence after pictures: `table` has their shift after the pairs' steps.
//!import common/mul_wide
//!import common/sincos

// The two dimensions of a pair: pairs beyond the rotary ones are neighbours.
fn pair_places(pair: u32) -> vec2u {
  if (INTERLEAVED || pair >= ROTARY_DIM / 2u) {
    return vec2u(2u * pair, 2u * pair + 1u);
  }
  return vec2u(pair, pair + ROTARY_DIM / 2u);
}

fn rotate_pair(values: vec2f, pair: u32, position: u32, step: vec2u) -> vec2f {
  if (pair >= ROTARY_DIM / 2u) {
    return values;
  }
  let place = position + table[ROTARY_DIM / 2u].x;
  let turn = cos_sin(mul_wide(place, step.x).y + place * step.y) * ATTENTION_FACTOR;
  return vec2f(values.x * turn.x - values.y * turn.y, values.y * turn.x + values.x * turn.y);
}
