#include "engine/hints_of_tuning_native.h"

#include "engine/kernel_hints.h"
#include "kernels/tuning_text.h"

namespace doppler::engine {

Result<std::vector<formats::RdrrKernelHint>> hints_of_tuning(std::string_view text, std::string_view file) {
  DP_TRY(const kernels::TuningKey key, kernels::tuning_key_of(text, file));
  if (key.wgsl != kernels::wgsl_digest()) {
    return fail(
        ErrorKind::kInvalidInput,
        "The tuning in %s was measured with other kernels than this build's; doppler tune measures again.",
        printable(file).c_str());
  }
  DP_TRY(const kernels::TuningTable table, kernels::parse_tuning(text, key, file));
  const gpu::Caps caps{.adapter = key.adapter};
  std::vector<formats::RdrrKernelHint> hints;
  for (const auto& [name, choice] : table.choices) {
    if (!(choice.seconds > 0 && choice.seconds < choice.table_seconds)) continue;
    auto making = make_kernel_hint(name.first, choice.variant, caps);
    making.start();  // natively it does not wait
    DP_TRY(formats::RdrrKernelHint hint, making.take());
    hint.measured = {.shape = name.second,
                     .lane = key.lane,
                     .constants = choice.constants,
                     .seconds = choice.seconds,
                     .table_seconds = choice.table_seconds,
                     .unknown = {}};
    hints.push_back(std::move(hint));
  }
  if (!hints.empty()) return hints;
  return fail(ErrorKind::kInvalidInput,
              "The tuning in %s has no choice that is faster than the tables': there is nothing to hint.",
              printable(file).c_str());
}

}  // namespace doppler::engine
