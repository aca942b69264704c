// The summary at the end of `run`: one line for a person, one JSON object for a program.
#pragma once

#include <string>

#include "bench/origin.h"
#include "doppler/doppler.h"

namespace doppler::cli {

// "Layers 0 to 15 on NVIDIA H200 (4.1 GiB), 16 to 31 on NVIDIA H200 (4.3 GiB)"; empty if each device has all layers.
std::string parts_line(const ModelInfo& info);
// "8 prompt tokens, TTFT 0.12 s; prefill 66.7 tok/s; 64 tokens at 83.1 tok/s; 41 MiB on llvmpipe (wgpu)"
std::string run_line(const Model& model, const Generation& generation);
std::string run_json(const Model& model, const Generation& generation, const bench::UsedPreset& preset);

}  // namespace doppler::cli
