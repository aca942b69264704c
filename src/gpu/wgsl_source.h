// The WGSL files of src/kernels/, embedded at build time by tools/embed_wgsl. Every file also has a generated
// header "kernels/<folder>/<file>.wgsl.h" with its Params struct, binding numbers and layout.
// Read next: wgsl_composer.h, which puts entry files and the fragments they import together.
#pragma once

#include <span>
#include <string_view>

namespace doppler::gpu {

struct WgslSource {
  std::string_view path;  // relative to src/kernels: "linear/matvec/matvec_q4_k.wgsl"
  std::string_view text;  // its //!import lines included; in WebAssembly without comments
};

// All embedded files, sorted by path. Defined in the generated wgsl_registry.cpp (library doppler_wgsl).
std::span<const WgslSource> embedded_wgsl();

// `name` is the path without its extension, as in `//!import common/step_state`. Null if there is no such
// file.
inline const WgslSource* find_wgsl(std::string_view name) {
  constexpr std::string_view kExtension = ".wgsl";
  for (const WgslSource& source : embedded_wgsl()) {
    if (source.path.size() == name.size() + kExtension.size() && source.path.starts_with(name))
      return &source;
  }
  return nullptr;
}

}  // namespace doppler::gpu
