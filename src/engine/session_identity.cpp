#include "engine/session_identity.h"

#include <algorithm>

namespace doppler::engine {
namespace {

constexpr size_t kSampledTensors = 32;
constexpr uint64_t kSampleBytes = 1024;

}  // namespace

Task<Result<std::string>> weights_digest(const formats::Checkpoint& checkpoint) {
  const std::span<const formats::TensorInfo> tensors = checkpoint.tensors();
  const size_t samples = std::min(kSampledTensors, tensors.size());
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, 64 bits
  for (size_t i = 0; i < samples; ++i) {
    const formats::TensorInfo& tensor = tensors[i * tensors.size() / samples];
    const uint64_t count = std::min(kSampleBytes, tensor.bytes);
    auto reading = checkpoint.file(tensor.file).read(tensor.offset + (tensor.bytes - count) / 2, count);
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
    for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  }
  co_return format_text("%016llx", static_cast<unsigned long long>(hash));
}

Task<Result<std::string>> session_fingerprint(const LoadedModel& loaded) {
  const model::PlanRunner& runner = *loaded.runner;
  const formats::ModelConfig& c = runner.config();
  auto hashing = weights_digest(*loaded.checkpoint);
  DP_CO_TRY(const std::string digest, co_await std::move(hashing));
  co_return format_text("%s %s L%u H%u/%u D%u E%u V%u theta %g %s weights %s", c.family.c_str(),
                        printable(c.name).c_str(), c.n_layers, c.n_heads, c.n_kv_heads, c.head_dim,
                        c.hidden_dim, c.vocab_size, c.rope.theta,
                        kernels::cache_format_name(runner.options().cache_format), digest.c_str());
}

}  // namespace doppler::engine
