// Words of a slot's MoreState (sample.h). Consts: HISTORY.
const kMoreMu = 0u; // bits of an f32
const kMoreCount = 1u;
const kMoreHistory = 4u;
const kMoreWords = kMoreHistory + HISTORY;
