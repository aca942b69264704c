// The same for rows on three axes (time, height, width), of which each pair has one. After the pairs' steps `table`
// holds what is added to each row's position: (time, height), then (width, 0). Consts: AXIS_HEIGHT, AXIS_WIDTH,
// AXES_INTERLEAVED; see rope.h, RopeAxes.
fn place_of_pair(row: u32, position: u32, pair: u32) -> u32 {
  let at = ROTARY_DIM / 2u + 2u * row;
  var is_height = pair >= AXIS_HEIGHT && pair < AXIS_WIDTH;
  var is_width = pair >= AXIS_WIDTH;
  if (AXES_INTERLEAVED) {
    is_height = pair % 3u == 1u && pair < 3u * AXIS_HEIGHT;
    is_width = pair % 3u == 2u && pair < 3u * AXIS_WIDTH;
  }
  if (is_width) { return position + table[at + 1u].x; }
  return position + select(table[at].x, table[at].y, is_height);
}
