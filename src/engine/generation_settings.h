// From the public options of a generation to what a runner takes.
#pragma once

#include "doppler/doppler.h"
#include "engine/draft_policy.h"
#include "model/step_runner.h"
#include "tokenizer/tokenizer.h"

namespace doppler::engine {

// On a CPU, of a prompt at a time: a stop is seen between them.
inline constexpr uint32_t kCpuPromptRows = 64;
inline constexpr double kChunkSeconds = 0.5;

struct GeneratorConfig {
  uint32_t vocab_size = 0;
  std::vector<uint32_t> stop_tokens;
  uint32_t batch = model::kDefaultBatch;  // decode steps of a submit, where the options do not say
  uint32_t prompt_rows = 0;               // tokens of a prompt at a time; 0: the runner's chunk
  bool show_special = false;              // special tokens are part of the text
  DraftUse drafts = DraftUse::kNever;     // where the runner can
  double chunk_seconds =
      kChunkSeconds;  // a chunk of the prompt that takes longer makes the next ones smaller
};

// Errors: those of the public check_options(), submits out of their range, a logit bias outside the vocabulary. max_batch:
// StepRunner's.
Result<void> check_options(const GenerateOptions& options, const GeneratorConfig& config, uint32_t max_batch);
// A generation is one segment, or where a full context slides one after another.
struct Segment {
  uint32_t max_tokens = 0;  // of this one
  uint32_t slides = 0;      // before it
  uint32_t generated = 0;   // tokens before it
};
// `tokenizer` says which tokens break repetitions (DRY); null: none do.
model::GenerationSettings settings_of(const GenerateOptions& options, const GeneratorConfig& config,
                                      const tokenizer::Tokenizer* tokenizer, const Segment& segment);

// What remains of a full context that slides, in tokens: the newer half, and at least the token to go on from.
ptrdiff_t kept_by_slide(uint32_t ctx_len);
}  // namespace doppler::engine
