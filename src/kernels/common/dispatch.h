// One kernel launch, from the names of its parts: composes the WGSL for the device and records the dispatch.
// The layout and the binding order come from the generated header of the entry file, so they cannot disagree.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/wgsl_composer.h"
#include "kernels/context.h"

namespace doppler::kernels {

struct Launch {
  std::string_view variant;  // the pipeline's label
  std::string_view entry;    // "rms_norm/rms_norm_portable"
  std::span<const gpu::BindKind> layout;
  std::vector<gpu::WgslConst> consts;
  std::vector<std::pair<std::string_view, std::string_view>> substitutions;
  bool subgroups = false;
  bool f16 = false;
  bool matrix = false;               // subgroup matrices
  std::vector<TensorView> bindings;  // as in the layout, without the uniform
  std::span<const uint8_t> params;   // the uniform binding, if there is one
  gpu::Grid grid;
  uint64_t bytes = 0, fixed_bytes = 0, operations = 0;  // gpu/plan.h, PlanEntry
  uint32_t keys = 0;                                    // likewise
};
// Label: ctx.op_label.
Result<void> dispatch(Context& ctx, const Launch& launch);

inline constexpr uint64_t kWord = sizeof(uint32_t);  // the unit of every buffer

// Bound where a kernel's binding is not used in this recording, since WebGPU wants something in every
// binding.
inline constexpr uint64_t kUnusedBytes = 16;
TensorView unused_binding(Context& ctx);

inline gpu::WgslConst u32_const(std::string_view name, uint64_t value) {
  return {name, gpu::WgslConst::Type::kU32, static_cast<double>(value)};
}
inline gpu::WgslConst f32_const(std::string_view name, float value) {
  return {name, gpu::WgslConst::Type::kF32, value};
}
inline gpu::WgslConst bool_const(std::string_view name, bool value) {
  return {name, gpu::WgslConst::Type::kBool, value ? 1.0 : 0.0};
}

// An error unless the view is there and holds at least `bytes`: `what` names it, as in "x of rms_norm".
Result<void> check_view(const TensorView& view, uint64_t bytes, std::string_view what);

// Invocations of a workgroup that walks `items` items: a power of two, at most `most` and what the device
// allows. CPU devices run a workgroup's invocations one after another, so a small one costs them fewer
// barriers.
uint32_t workgroup_for(const gpu::Caps& caps, uint64_t items, uint32_t most);

}  // namespace doppler::kernels
