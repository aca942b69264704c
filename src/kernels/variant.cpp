// The parts of variant.h that do not depend on the shape: what a device or a policy refuses, and the list of
// choices that `kernels --explain` prints.
#include "kernels/variant.h"

#include <algorithm>

#include "base/text.h"
#include "kernels/tuning.h"

namespace doppler::kernels {

std::string refuse_by_device(Lane lane, uint32_t needs, const gpu::Caps& caps, const Policy& policy) {
  if (!policy.allows(lane)) {
    return format_text("the lane %s is not among those of \"%s\"", lane_name(lane), policy.name.c_str());
  }
  if ((needs & kNeedSubgroups) && !caps.subgroups) return "the device has no subgroups";
  if ((needs & kNeedF16) && !caps.f16) return "the device has no f16";
  if ((needs & kNeedDp4a) && !caps.dp4a) return "the device has no packed 8-bit dot product";
  if ((needs & kNeedMatrixF16) && !caps.matrix_f16) return "the device has no f16 subgroup matrices";
  if ((needs & kNeedTint) && caps.dialect != gpu::WgslDialect::kTint) {
    return format_text("its WGSL needs Tint, which the provider %s does not use", caps.provider.c_str());
  }
  return "";
}

void note_choice(Context& ctx, const Choice& choice) {
  for (Choice& known : ctx.choices) {
    if (known.operation == choice.operation && known.shape == choice.shape &&
        known.variant == choice.variant) {
      ++known.uses;
      return;
    }
  }
  ctx.choices.push_back(choice);
}

std::string_view tuned_variant(const Policy& policy, std::string_view operation,
                               std::string_view shape_text) {
  const TunedChoice* tuned = policy.tuning ? policy.tuning->find(operation, shape_text) : nullptr;
  return tuned ? std::string_view(tuned->variant) : std::string_view();
}

Result<void> check_forced(std::string_view operation, std::string_view forced,
                          std::span<const std::string> names) {
  if (std::find(names.begin(), names.end(), forced) != names.end()) return {};
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  const auto near = nearest(forced, names);
  return fail(ErrorKind::kInvalidInput, "%s has no variant \"%s\"%s; its variants are %s.",
              std::string(operation).c_str(), printable(forced).c_str(),
              near ? (" (did you mean " + *near + "?)").c_str() : "", list.c_str());
}

}  // namespace doppler::kernels
