// The limits of the candidates that gather takes. Its twin with the samplers of more.h: sample_reach_more.
fn top_k_of(slot: u32) -> u32 { return params[slot].top_k; }

// Is top-p the first to cut, so that it counts the whole vocabulary?
fn is_top_p_first(slot: u32) -> bool { return params[slot].top_p < 1.0 && !is_top_k(params[slot].top_k); }
