// tuning.h: keys, what a table has for an operation, constants. The file: tuning_text.cpp.
#include "kernels/tuning.h"

#include <algorithm>

#include "gpu/wgsl_files.h"
#include "gpu/wgsl_source.h"
#include "kernels/text_digest.h"

namespace doppler::kernels {

const TunedChoice* TuningTable::find(std::string_view operation, std::string_view shape) const {
  const auto it = choices.find({std::string(operation), std::string(shape)});
  return it == choices.end() ? nullptr : &it->second;
}

TuningKey tuning_key(const gpu::Caps& caps, const Policy& policy, std::string_view kv) {
  return {.adapter = caps.adapter,
          .driver = caps.driver,
          .provider = caps.provider,
          .backend = caps.backend,
          .wgsl = wgsl_digest(),
          .lane = policy.name,
          .kv = std::string(kv)};
}

std::string wgsl_digest() {
  constexpr std::string_view kExtension = ".wgsl";
  TextDigest digest;
  for (const gpu::WgslSource& source : gpu::embedded_wgsl()) {
    const std::string_view name = source.path.substr(0, source.path.size() - kExtension.size());
    digest.add(name);
    const auto on_disk = gpu::read_wgsl_from_disk(name);  // an error is reported where the file is compiled
    digest.add(on_disk && *on_disk ? std::string_view(**on_disk) : source.text);
  }
  return digest.text();
}

uint32_t tunable(const Policy& policy, Choice& choice, std::string_view name, uint32_t standard,
                 std::vector<uint32_t> alternatives) {
  uint32_t value = standard;
  const TunedChoice* tuned = policy.tuning ? policy.tuning->find(choice.operation, choice.shape) : nullptr;
  if (tuned && tuned->variant == choice.variant) {
    const auto found = tuned->constants.find(name);
    if (found != tuned->constants.end() &&
        std::ranges::find(alternatives, found->second) != alternatives.end()) {
      value = found->second;
    }
  }
  if (std::ranges::find(choice.constants, name, &ChosenConstant::name) == choice.constants.end()) {
    choice.constants.push_back({.name = std::string(name),
                                .value = value,
                                .standard = standard,
                                .alternatives = std::move(alternatives)});
  }
  return value;
}

}  // namespace doppler::kernels
