// The position by which a pair of a row's heads rotates: the row's own. Twins: rope_place_shifted, rope_place_axes.
fn place_of_pair(row: u32, position: u32, pair: u32) -> u32 { return position; }
