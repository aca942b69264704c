// The limits of the candidates that gather takes, with the samplers of more.h. Takes the place of sample_reach.
fn is_mirostat(slot: u32) -> bool { return params[slot].mirostat_tau > 0.0; }

fn top_k_of(slot: u32) -> u32 { return select(params[slot].top_k, 0u, is_mirostat(slot)); }

fn is_top_p_first(slot: u32) -> bool {
  let is_first = !is_top_k(params[slot].top_k) && params[slot].typical_p >= 1.0 && params[slot].top_n_sigma <= 0.0;
  return params[slot].top_p < 1.0 && is_first && !is_mirostat(slot);
}
