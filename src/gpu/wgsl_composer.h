// Puts one kernel's WGSL together: directives of the dialect, numbers as a const prelude, imported fragments
// in order (each once), then the entry file. The only place that knows how Tint and naga differ.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/caps.h"
#include "gpu/wgsl_source.h"

namespace doppler::gpu {

struct WgslConst {
  std::string_view name;  // UPPER_CASE
  enum class Type : uint8_t { kU32, kI32, kF32, kBool } type = Type::kU32;
  double value = 0;
};

struct ComposeOptions {
  bool f16 = false;        // the kernel uses f16: emits `enable f16;`
  bool subgroups = false;  // the kernel uses subgroups: emits `enable subgroups;` where the dialect wants it
  // The kernel uses subgroup matrices with f16 inputs, and so f16 and subgroups; Tint only.
  bool matrix = false;
  std::span<const WgslConst> consts;
  // Replaces the fragment named `slot` wherever it is imported: how a kernel written once reads weights of
  // any format: //!import linear/weights/format  with {"linear/weights/format", "linear/weights/q4_k"}.
  std::span<const std::pair<std::string_view, std::string_view>> substitutions;
};

// `entry` is a path without extension relative to src/kernels ("linear/matvec/subgroup"). With DOPPLER_WGSL_DIR set,
// files are read from there instead of the embedded text, for an edit-run loop.
Result<std::string> compose_wgsl(std::string_view entry, const Caps& caps, const ComposeOptions& options);

}  // namespace doppler::gpu
