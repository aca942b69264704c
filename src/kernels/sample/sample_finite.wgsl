// The choice among logits that are no numbers: kNotFinite (common/step_state.h), which no table has.
const kNotFinite = 0xFFFFFFFEu;

// The id of the best of all (common/argmax_key), unless its logit is NaN or infinite.
fn finite_id(best: vec2u) -> u32 {
  return select(kNotFinite, best.y, best.x > 0x007FFFFFu && best.x < 0xFF800000u);
}
