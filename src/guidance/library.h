// The part of llguidance's C interface (guidance-ai/llguidance, parser/llguidance.h) that we use, opened at run time.
// Types and functions have their original names. Read next: guides.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace doppler::guidance {

struct LlgTokenizer;
struct LlgMatcher;

struct LlgParserLimits {
  size_t max_items_in_row;
  uint64_t initial_lexer_fuel, step_lexer_fuel;
  size_t step_max_items, max_lexer_states, max_grammar_size;
  bool precompute_large_lexemes, verbose_errors;
};

struct LlgConstraintInit {
  const LlgTokenizer* tokenizer;
  uint32_t log_buffer_level, log_stderr_level;
  bool ff_tokens_ok, backtrack_ok;
  LlgParserLimits limits;
};

struct LlgTokenizerInitV2 {
  size_t struct_size;
  uint32_t vocab_size;
  uint32_t tok_eos;
  const uint32_t* token_lens;
  const uint8_t* token_bytes;
  const char* tokenizer_json;
  bool tokenize_assumes_string;
  size_t (*tokenize_fn)(const void*, const uint8_t*, size_t, uint32_t*, size_t);
  bool use_approximate_greedy_tokenize_fn;
  const void* tokenize_user_data;
  const char* const* slices;
  const uint32_t* tok_eos_extra;
  uint32_t tok_eos_extra_count;
};

#define DOPPLER_LLG_FUNCTIONS(X)                                                                   \
  X(constraint_init_set_defaults, void, (LlgConstraintInit*, const LlgTokenizer*))                 \
  X(new_tokenizer_v2, LlgTokenizer*, (const LlgTokenizerInitV2*, char* error, size_t error_bytes)) \
  X(free_tokenizer, void, (LlgTokenizer*))                                                         \
  X(new_matcher, LlgMatcher*, (const LlgConstraintInit*, const char* kind, const char* text))      \
  X(clone_matcher, LlgMatcher*, (const LlgMatcher*))                                               \
  X(free_matcher, void, (LlgMatcher*))                                                             \
  X(matcher_get_error, const char*, (LlgMatcher*))                                                 \
  X(matcher_get_mask_byte_size, size_t, (const LlgMatcher*))                                       \
  X(matcher_compute_mask_into, int32_t, (LlgMatcher*, uint32_t* mask, size_t bytes))               \
  X(matcher_compute_ff_tokens, int32_t, (LlgMatcher*, uint32_t* tokens, size_t count))             \
  X(matcher_consume_token, int32_t, (LlgMatcher*, uint32_t token))

struct Library {
#define DOPPLER_LLG_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  DOPPLER_LLG_FUNCTIONS(DOPPLER_LLG_MEMBER)
#undef DOPPLER_LLG_MEMBER
};

// Opened once. Error (kUnsupported): it is not there; the sentence says where it was looked for.
Result<const Library*> open_library();

}  // namespace doppler::guidance
