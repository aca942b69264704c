// The bias list that prepare adds, as more_bias made it. Takes the place of sample_bias.
fn bias_count_of(place: Place) -> u32 { return bias[place.row * LIST_ENTRIES].x; }

fn bias_of(place: Place, i: u32) -> vec2u { return bias[place.row * LIST_ENTRIES + 1u + i]; }
