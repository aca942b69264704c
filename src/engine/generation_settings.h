// From the public options of a generation to what a runner takes.
#pragma once

#include "doppler/doppler.h"
#include "model/generation.h"
#include "tokenizer/tokenizer.h"

namespace doppler::engine {

// The common properties of a model's answers.
struct AnswerConfig {
  uint32_t vocab_size = 0, ctx_len = 0;
  std::vector<uint32_t> stop_tokens;
  uint32_t batch = model::kDefaultBatch;             // decode steps of a submit, unless the options say
  model::Drafting drafting = model::Drafting::kOff;  // unless the options say
  model::LoadedDrafters drafters;
};

// Errors: those of the public check_options(), submits out of their range, a logit bias outside the vocabulary.
// max_batch:
// steps of a ticket at most.
Result<void> check_options(const GenerateOptions& options, const AnswerConfig& config, uint32_t max_batch);
// A generation is one segment; if a full context slides, one after another.
struct Segment {
  uint32_t max_tokens = 0;  // of this one
  uint32_t slides = 0;      // before it
  uint32_t generated = 0;   // tokens before it
};
// The drafter that the options ask for, or else the one that the model was loaded for.
model::Drafter drafter_of(const GenerateOptions& options, const AnswerConfig& config);
// `tokenizer` gives the tokens that break repetitions (DRY), and those of a prediction. Null: there are no such tokens.
model::GenerationSettings settings_of(const GenerateOptions& options, const AnswerConfig& config,
                                      const tokenizer::Tokenizer* tokenizer, const Segment& segment);

// The rest of a full context that slides, in tokens: the newer half, and at least the token to go on from.
ptrdiff_t kept_by_slide(uint32_t ctx_len);
}  // namespace doppler::engine
