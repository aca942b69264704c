// llama.cpp's field "lora": the adapters of a request by their numbers, with a scale each.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace doppler::openai {

struct LoraScale {
  uint32_t id = 0;  // in the server's list
  float scale = 1;  // times the adapter's own
};

// Reads [{"id": 0, "scale": 0.5}]. Errors: another shape, or an id that stands twice.
Result<std::vector<LoraScale>> read_lora(const Json& list);

}  // namespace doppler::openai
