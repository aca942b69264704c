// Likewise after pictures, whose rows count by their sides: the text's rows are shifted by what that differs.
fn place_of_pair(row: u32, position: u32, pair: u32) -> u32 { return position + state.rope_shift; }
