// Picks the reader by the kind of checkpoint and checks what every family relies on.
#include "model/config.h"

#include <cmath>

#include "model/config_sources.h"

namespace doppler::model {
namespace {

struct Range {
  const char* what;
  uint32_t value;
  uint32_t least;
  uint32_t most;
};

Result<void> check(const ModelConfig& c) {
  // Upper bounds are about ten times the largest published models: they stop a hostile file, not a real one.
  const Range ranges[] = {
      {"layer count", c.n_layers, 1, 1024},
      {"head count", c.n_heads, 1, 1024},
      {"kv head count", c.n_kv_heads, 1, 1024},
      {"head dimension", c.head_dim, 1, 512},
      {"hidden dimension", c.hidden_dim, 1, 1u << 18},
      {"feed-forward dimension", c.ffn_dim, 1, 1u << 20},
      {"vocabulary size", c.vocab_size, 1, 1u << 22},
      {"context length", c.ctx_len, 1, 1u << 28},
  };
  for (const Range& range : ranges) {
    if (range.value < range.least || range.value > range.most) {
      return fail(ErrorKind::kInvalidInput, "The %s is %u; allowed is %u to %u.", range.what, range.value,
                  range.least, range.most);
    }
  }
  if (c.n_heads % c.n_kv_heads != 0) {
    return fail(ErrorKind::kInvalidInput, "The head count (%u) is not a multiple of the kv head count (%u).",
                c.n_heads, c.n_kv_heads);
  }
  const RopeConfig& r = c.rope;
  if (r.rotary_dim < 2 || r.rotary_dim > c.head_dim || r.rotary_dim % 2 != 0) {
    return fail(ErrorKind::kInvalidInput,
                "The rotary dimension is %u; allowed is an even number from 2 up to the head dimension (%u).",
                r.rotary_dim, c.head_dim);
  }
  const bool sane = std::isfinite(c.norm_eps) && c.norm_eps >= 0 && std::isfinite(r.theta) && r.theta >= 1 &&
                    std::isfinite(r.factor) && r.factor > 0 && std::isfinite(r.original_ctx_len);
  if (!sane)
    return fail(ErrorKind::kInvalidInput,
                "The norm epsilon, rope theta or rope factor is not a usable number.");
  const bool needs_original = r.scaling == RopeScaling::kLlama3 || r.scaling == RopeScaling::kYarn ||
                              r.scaling == RopeScaling::kLongRope;
  if (needs_original && r.original_ctx_len < 1) {
    return fail(ErrorKind::kInvalidInput,
                "The rope scaling needs the original context length, which is missing.");
  }
  return {};
}

}  // namespace

Result<ModelConfig> read_config(const formats::Checkpoint& checkpoint) {
  const formats::GgufFile* gguf = checkpoint.gguf();
  Result<ModelConfig> read =
      gguf ? config_from_gguf(checkpoint, *gguf) : config_from_huggingface(checkpoint, checkpoint.config());
  DP_TRY(ModelConfig config, std::move(read));
  if (config.attention_scale == 0) {
    config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  }
  DP_CHECK(check(config));
  return config;
}

}  // namespace doppler::model
