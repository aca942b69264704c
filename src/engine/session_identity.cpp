#include "engine/session_identity.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/sha256.h"
#include "formats/architectures/rope_frequencies.h"

namespace doppler::engine {
namespace {

constexpr size_t kSampledTensors = 32;
constexpr uint64_t kSampleBytes = 1024;

// FNV-1a, 64 bits.
class Digest {
 public:
  void add(std::span<const uint8_t> bytes) {
    for (const uint8_t byte : bytes) hash_ = (hash_ ^ byte) * 0x100000001b3u;
  }
  std::string text() const { return format_text("%016llx", static_cast<unsigned long long>(hash_)); }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace

Task<Result<std::string>> weights_digest(const formats::Checkpoint& checkpoint) {
  const std::span<const formats::TensorInfo> tensors = checkpoint.tensors();
  const size_t samples = std::min(kSampledTensors, tensors.size());
  Digest digest;
  for (size_t i = 0; i < samples; ++i) {
    const formats::TensorInfo& tensor = tensors[i * tensors.size() / samples];
    const uint64_t count = std::min(kSampleBytes, tensor.bytes);
    auto reading = checkpoint.file(tensor.file).read(tensor.offset + (tensor.bytes - count) / 2, count);
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
    digest.add(bytes);
  }
  co_return digest.text();
}

Task<Result<std::string>> scaling_digest(const formats::Checkpoint& checkpoint,
                                         const formats::ModelConfig& config, uint32_t ctx_len) {
  Digest digest;
  bool is_plain = true;
  for (const formats::RopeConfig* rope : {&config.rope, &config.local_rope}) {
    const std::string divisors = formats::divisors_tensor(*rope, ctx_len);
    is_plain =
        is_plain && rope->scaling == formats::RopeScaling::kNone && divisors.empty() && rope->factor == 1;
    const bool is_long = rope->original_ctx_len != 0 && ctx_len > rope->original_ctx_len;
    std::vector<double> numbers = {rope->theta,
                                   static_cast<double>(rope->rotary_dim),
                                   rope->factor,
                                   rope->original_ctx_len,
                                   rope->low_freq_factor,
                                   rope->high_freq_factor,
                                   rope->beta_fast,
                                   rope->beta_slow,
                                   rope->mscale,
                                   rope->mscale_all_dim,
                                   rope->attention_factor,
                                   rope->turning_part,
                                   static_cast<double>(rope->scaling),
                                   rope->truncate ? 1.0 : 0.0,
                                   rope->scaling == formats::RopeScaling::kLongRope && is_long ? 1.0 : 0.0};
    for (const auto* factors : {&rope->long_factor, &rope->short_factor}) {
      numbers.insert(numbers.end(), factors->begin(), factors->end());
    }
    for (const double number : numbers) digest.add(text_bytes(format_text("%.9g ", number)));
    const formats::TensorInfo* tensor = divisors.empty() ? nullptr : checkpoint.find(divisors);
    if (!tensor) continue;
    auto reading = checkpoint.read_tensor(*tensor);
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
    digest.add(bytes);
  }
  co_return is_plain ? std::string() : " scaled " + digest.text();
}

namespace {

// Writes " adapters " and 16 hexadecimal digits over the numbers and scales of the adapters that all answers have.
// Empty: they have none.
std::string adapters_digest(const model::DeviceModel& runner) {
  const std::shared_ptr<const model::AdapterMix>& mix = runner.adapters().first();
  if (!mix) return {};
  Digest digest;
  for (const model::AdapterPart& part : mix->parts) {
    digest.add(doppler::bytes_of(part.scale));
    for (const formats::FittedMatrix& matrix : part.adapter->matrices) {
      for (const std::vector<float>* numbers : {&matrix.a, &matrix.b}) {
        digest.add(doppler::bytes_of(*numbers).first(
            std::min<size_t>(kSampleBytes, numbers->size() * sizeof(float))));
      }
    }
  }
  return " adapters " + digest.text();
}

}  // namespace

Task<Result<std::string>> session_fingerprint(const LoadedModel& loaded) {
  const model::DeviceModel& runner = *loaded.runner;
  const formats::ModelConfig& c = runner.config();
  auto hashing = weights_digest(*loaded.checkpoint);
  DP_CO_TRY(const std::string digest, co_await std::move(hashing));
  auto looking = scaling_digest(*loaded.checkpoint, c, runner.ctx_len());
  DP_CO_TRY(const std::string scaling, co_await std::move(looking));
  co_return format_text("%s %s L%u H%u/%u D%u E%u V%u theta %g%s %s weights %s%s", c.family.c_str(),
                        printable(c.name).c_str(), c.n_layers, c.n_heads, c.n_kv_heads, c.head_dim,
                        c.hidden_dim, c.vocab_size, c.rope.theta, scaling.c_str(),
                        kernels::cache_format_name(runner.options().cache_format), digest.c_str(),
                        adapters_digest(runner).c_str());
}

}  // namespace doppler::engine
