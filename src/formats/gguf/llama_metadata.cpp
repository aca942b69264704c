// Fields and tensors of the llama and gemma3 architectures in GGUF (llama_metadata.h).
#include "formats/gguf/llama_metadata.h"

#include <cmath>
#include <numbers>

namespace doppler::formats {
namespace {

constexpr uint32_t kLayers70B = 80;

}  // namespace

std::vector<float> llama3_rope_factors(const LlamaShape& shape) {
  const Llama3Rope& rope = shape.rope;
  const double original = rope.original_ctx_len;
  const double longest = original / rope.low_freq_factor, shortest = original / rope.high_freq_factor;
  std::vector<float> factors(shape.head_dim / 2);
  for (size_t i = 0; i < factors.size(); ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / shape.head_dim;
    const double wave_length =
        2 * std::numbers::pi * std::pow(static_cast<double>(shape.rope_theta), exponent);
    double factor = 1;
    if (wave_length > longest) {
      factor = rope.factor;
    } else if (wave_length >= shortest) {
      const double smooth =
          (original / wave_length - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
      factor = 1 / ((1 - smooth) / rope.factor + smooth);
    }
    factors[i] = static_cast<float>(factor);
  }
  return factors;
}

void add_shape_metadata(GgufHeader& header, std::string_view architecture, const LlamaShape& shape,
                        uint32_t file_type) {
  const std::string prefix = std::string(architecture) + ".";
  header.add_string("general.architecture", architecture);
  header.add_u32("general.file_type", file_type);
  header.add_u32("general.quantization_version", kQuantisationVersion);
  header.add_u32(prefix + "block_count", shape.n_layers);
  header.add_u32(prefix + "context_length", shape.ctx_len);
  header.add_u32(prefix + "embedding_length", shape.hidden_dim);
  header.add_u32(prefix + "feed_forward_length", shape.ffn_dim);
  header.add_u32(prefix + "attention.head_count", shape.n_heads);
  header.add_u32(prefix + "attention.head_count_kv", shape.n_kv_heads);
  header.add_u32(prefix + "attention.key_length", shape.head_dim);
  header.add_u32(prefix + "attention.value_length", shape.head_dim);
  header.add_f32(prefix + "attention.layer_norm_rms_epsilon", shape.rms_eps);
  header.add_u32(prefix + "rope.dimension_count", shape.head_dim);
  header.add_f32(prefix + "rope.freq_base", shape.rope_theta);
  header.add_u32(prefix + "vocab_size", shape.vocab_size);
}

void add_llama_metadata(GgufHeader& header, const LlamaShape& shape, const QuantMix& mix) {
  const std::string architecture = shape.gemma3 ? "gemma3" : "llama";
  add_shape_metadata(header, architecture, shape, mix.file_type);
  if (shape.window != 0) header.add_u32(architecture + ".attention.sliding_window", shape.window);
}

std::vector<LlamaTensor> llama_tensors(const LlamaShape& s, const QuantMix& mix) {
  using Kind = LlamaTensor::Kind;
  using Role = TensorRole;
  std::vector<LlamaTensor> all;
  const uint64_t hidden = s.hidden_dim, ffn = s.ffn_dim, vocab = s.vocab_size;
  const uint64_t q_rows = uint64_t{s.n_heads} * s.head_dim, kv_rows = uint64_t{s.n_kv_heads} * s.head_dim;
  const bool wide_groups = s.n_layers == kLayers70B && s.n_heads == 8 * s.n_kv_heads;

  const auto matrix = [&](const char* gguf, const char* hf, Role role, uint32_t layer, uint64_t n,
                          uint64_t k) {
    DType type = type_for(mix, {role, layer, s.n_layers, s.tied, wide_groups});
    if (k % dtype_info(type).block_size != 0) type = with_smaller_block(type, k);
    all.push_back({gguf, hf, Kind::kMatrix, type, {n, k}});
  };
  const auto norm_of = [&](const std::string& gguf, const std::string& hf, uint64_t n) {
    all.push_back({gguf, hf, Kind::kNorm, DType::kF32, {n}});
  };
  const auto norm = [&](const std::string& gguf, const std::string& hf) { norm_of(gguf, hf, hidden); };
  if (s.rope.factor != 0) {
    all.push_back({"rope_freqs.weight", "", Kind::kRopeFactors, DType::kF32, {uint64_t{s.head_dim} / 2}});
  }
  matrix("token_embd.weight", "model.embed_tokens.weight", Role::kEmbedding, 0, vocab, hidden);
  for (uint32_t layer = 0; layer < s.n_layers; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".",
                      hf = "model.layers." + std::to_string(layer) + ".";
    const auto layer_matrix = [&](const char* gguf_end, const char* hf_end, Role role, uint64_t n,
                                  uint64_t k) {
      matrix((blk + gguf_end).c_str(), (hf + hf_end).c_str(), role, layer, n, k);
    };
    norm(blk + "attn_norm.weight", hf + "input_layernorm.weight");
    layer_matrix("attn_q.weight", "self_attn.q_proj.weight", Role::kOtherMatrix, q_rows, hidden);
    if (!s.gemma3) all.back().permuted_heads = s.n_heads;
    layer_matrix("attn_k.weight", "self_attn.k_proj.weight", Role::kOtherMatrix, kv_rows, hidden);
    if (!s.gemma3) all.back().permuted_heads = s.n_kv_heads;
    layer_matrix("attn_v.weight", "self_attn.v_proj.weight", Role::kAttnV, kv_rows, hidden);
    layer_matrix("attn_output.weight", "self_attn.o_proj.weight", Role::kOtherMatrix, hidden, q_rows);
    if (s.gemma3) {
      norm_of(blk + "attn_q_norm.weight", hf + "self_attn.q_norm.weight", s.head_dim);
      norm_of(blk + "attn_k_norm.weight", hf + "self_attn.k_norm.weight", s.head_dim);
      norm(blk + "post_attention_norm.weight", hf + "post_attention_layernorm.weight");
      norm(blk + "ffn_norm.weight", hf + "pre_feedforward_layernorm.weight");
      norm(blk + "post_ffw_norm.weight", hf + "post_feedforward_layernorm.weight");
    } else {
      norm(blk + "ffn_norm.weight", hf + "post_attention_layernorm.weight");
    }
    layer_matrix("ffn_gate.weight", "mlp.gate_proj.weight", Role::kOtherMatrix, ffn, hidden);
    layer_matrix("ffn_up.weight", "mlp.up_proj.weight", Role::kOtherMatrix, ffn, hidden);
    layer_matrix("ffn_down.weight", "mlp.down_proj.weight", Role::kFfnDown, hidden, ffn);
  }
  norm("output_norm.weight", "model.norm.weight");
  if (!s.tied) matrix("output.weight", "lm_head.weight", Role::kOutput, 0, vocab, hidden);
  return all;
}

Result<> check_llama_tensors(const std::vector<LlamaTensor>& tensors) {
  for (const LlamaTensor& tensor : tensors) {
    const DTypeInfo& info = dtype_info(tensor.type);
    if (tensor.shape.back() % info.block_size == 0) continue;
    return fail(ErrorKind::kInvalidInput,
                "Column count (%llu) of tensor \"%s\" is not a multiple of the %s block (%u).",
                static_cast<unsigned long long>(tensor.shape.back()), tensor.gguf_name.c_str(), info.name,
                info.block_size);
  }
  return {};
}

}  // namespace doppler::formats
