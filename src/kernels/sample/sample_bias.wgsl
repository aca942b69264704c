// The bias list that prepare adds: the request's own. Its twin with the samplers of more.h: sample_bias_more.
fn bias_count_of(place: Place) -> u32 { return min(params[place.slot].bias_count, MAX_BIAS); }

fn bias_of(place: Place, i: u32) -> vec2u { return bias[place.slot * MAX_BIAS + i]; }
