// The tokens of a drafting step, and the text that the drafter lookup searches: the WGSL twin of draft_text.h, which
// explains each field.
struct DraftText {
  base: u32,
  length: u32,
  written: u32,
  best: atomic<u32>,
  given: u32,
  unused: array<u32, 59>,
  rows: array<u32, 64>,
  tokens: array<u32>,
}
