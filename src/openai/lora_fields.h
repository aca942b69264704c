// llama.cpp's field "lora": which adapters a request has, by their numbers, with a scale each.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace doppler::openai {

struct LoraScale {
  uint32_t id = 0;  // in the server's list
  float scale = 1;  // besides the adapter's own
};

// [{"id": 0, "scale": 0.5}]. Error: another shape, or an id twice.
Result<std::vector<LoraScale>> read_lora(const Json& list);

}  // namespace doppler::openai
