// tuning.h: digests that name a model's shape, and the look-up of its cadence.
#include "engine/tuning.h"

#include "base/text.h"

namespace doppler::engine {

kernels::TuningKey tuning_key(const gpu::Caps& caps, const model::RunnerOptions& options) {
  return kernels::tuning_key(caps, options.policy, kernels::cache_format_name(options.cache_format));
}

std::string model_key(const formats::Checkpoint& checkpoint) {
  uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a: tells models apart, defends against nobody
  const auto add = [&hash](uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((value >> shift) & 0xFF)) * 0x100000001b3ull;
  };
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
    for (const char c : tensor.name) add(static_cast<uint8_t>(c));
    add(static_cast<uint64_t>(tensor.type));
    for (const uint64_t extent : tensor.shape) add(extent);
  }
  return format_text("%016llx", static_cast<unsigned long long>(hash));
}

void allow_tuned_lane(const formats::Checkpoint& checkpoint, kernels::Policy& policy) {
  if (policy.name != "fast" || !policy.tuning || policy.tuning->persistent.empty()) return;
  if (policy.tuning->persistent.contains(model_key(checkpoint))) policy.allow(kernels::Lane::kPersistent);
}

uint32_t default_batch(const LoadedModel& loaded) {
  const auto& tuning = loaded.runner->options().policy.tuning;
  if (!tuning || tuning->batch.empty()) return model::kDefaultBatch;
  const auto found = tuning->batch.find(model_key(*loaded.checkpoint));
  return found == tuning->batch.end() ? model::kDefaultBatch : found->second;
}

}  // namespace doppler::engine
