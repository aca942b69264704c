// The position by which a pair of a row's heads rotates, after pictures: a picture takes fewer positions than rows, so
// the rows of text after it are shifted. `table` has the shift after the pairs' steps. Twins: rope_place_shifted_many,
// rope_place_axes.
fn place_of_pair(row: u32, position: u32, pair: u32) -> u32 { return position + table[ROTARY_DIM / 2u].x; }
