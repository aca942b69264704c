// The parts of a compute pipeline. Pipelines are created together and off the main thread (Device::create_pipelines),
// and named by id afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/bind_kind.h"

namespace doppler::gpu {

using PipelineId = uint32_t;
using BindGroupId = uint32_t;

struct PipelineDesc {
  std::string label;             // the variant's name: "matvec.q4_k.subgroup.r4"
  std::string wgsl;              // composed for this device (wgsl_composer.h); the entry point is `main`
  std::vector<BindKind> layout;  // of group 0, by binding number
  std::vector<std::pair<std::string, double>> constants;  // WGSL overrides
  bool trusted = false;  // has passed its oracle tests: bounds checks of the provider may be dropped

  bool operator==(const PipelineDesc&) const = default;
};

}  // namespace doppler::gpu
