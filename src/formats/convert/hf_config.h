// config.json of a checkpoint of a known family, as the numbers that GGUF metadata needs.
#pragma once

#include "base/json_fwd.h"
#include "formats/convert/hf_families.h"
#include "formats/gguf/llama_metadata.h"

namespace doppler::formats {

// Transformers' "yarn"; factor 0: none.
struct YarnRope {
  float factor = 0;
  uint32_t original_ctx_len = 0;
  float beta_fast = 0, beta_slow = 0, attention_factor = 0;  // 0: the usual
};

struct HfShape {
  const HfFamily* family;
  uint32_t has;           // the family's features, and those that config.json asks for
  LlamaShape base;        // base.rope: Llama 3.1's stretching
  float linear_rope = 0;  // factor of linear stretching; 0: none
  YarnRope yarn;
  float local_rope = 0;         // rope base of the layers with a window; 0: as the others
  uint32_t window = 0;          // sliding attention window; 0: none
  uint32_t window_pattern = 0;  // every so many layers one sees everything; 0: the window is for all
  bool nested = false;          // the numbers stood in "text_config": a model that also sees
};

// Reads the old spelling (rope_theta, rope_scaling) and the new one (rope_parameters). Refuses features that the
// family's GGUF has no place for.
Result<HfShape> read_hf_config(const Json& config);

}  // namespace doppler::formats
