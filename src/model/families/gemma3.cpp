// The text model of the Gemma 3 family (Gemma Team 2025). Other than in llama.cpp beside it: embeddings times
// sqrt(H); each head of q and k is normalised before its rotation; a branch is normalised again before it joins the
// residual; most layers see a window and rotate by frequencies of their own; GELU gates.
// R rows, H hidden, F feed-forward, D = head_dim, Q = n_heads * D, K = n_kv_heads * D.
#include <cmath>

#include "base/tensor_id.h"
#include "formats/architectures/rope_frequencies.h"
#include "kernels/attention/attention.h"
#include "kernels/embed/embed.h"
#include "kernels/rms_norm/rms_norm.h"
#include "model/families/family.h"

namespace doppler::model {
namespace {

using kernels::Activation;
using kernels::TensorView;

constexpr TensorId kQkv[] = {TensorId::kQ, TensorId::kK, TensorId::kV};
constexpr TensorId kAttentionOut[] = {TensorId::kAttentionOut};
constexpr TensorId kGateUp[] = {TensorId::kGate, TensorId::kUp};
constexpr TensorId kDown[] = {TensorId::kDown};
constexpr TensorId kQkNorms[] = {TensorId::kQNorm, TensorId::kKNorm};

struct Layer {
  TensorView attention_norm, qk_norms, post_attention_norm, ffn_norm, post_ffn_norm;
  Projection qkv, attention_out, gate_up, down;
};

struct Rope {
  TensorView table;
  float attention_factor = 1.0f;
};

class Gemma3 final : public FamilyModel {
 public:
  Gemma3(const formats::ModelConfig& config, uint32_t ctx_len) : c_(config), ctx_len_(ctx_len) {}

  Task<Result<void>> load(WeightLoader& loader) override {
    DP_CO_TRY(embedding_, co_await loader.matrix(formats::stored_tensor(c_, TensorId::kEmbedding)));
    layers_.resize(c_.n_layers);
    for (uint32_t i = 0; i < c_.n_layers; ++i) {
      DP_CO_CHECK_WHILE(co_await load_layer(loader, i), "loading layer %u", i);
    }
    DP_CO_TRY(final_norm_, co_await loader.norm(formats::stored_tensor(c_, TensorId::kFinalNorm)));
    kernels::Weight output = embedding_;
    if (!c_.tied_embeddings) {
      DP_CO_TRY(output, co_await loader.matrix(formats::stored_tensor(c_, TensorId::kOutput)));
    }
    head_ = {.parts = {{.weight = std::move(output), .bias = {}}}, .n = c_.vocab_size, .k = c_.hidden_dim};
    DP_CO_TRY(global_rope_, co_await load_rope(loader, c_.rope));
    DP_CO_TRY(local_rope_, co_await load_rope(loader, c_.local_rope));
    co_return Result<void>();
  }

  kernels::EmbedNorm row_input(const kernels::Context& ctx, const StepIo& io) const override {
    return {.table = embedding_,
            .scale = embedding_scale(),
            .norm_weight = layers_[0].attention_norm,
            .eps = c_.norm_eps,
            .x = io.row,
            .h = {.buffer = io.normed_row, .k = c_.hidden_dim, .q8 = wants_q8(ctx, layers_[0].qkv)},
            .token = {}};
  }

  Result<Logits> record(kernels::Context& ctx, const StepIo& io) override {
    const uint64_t row_bytes = static_cast<uint64_t>(c_.hidden_dim) * 4;
    TensorView x = io.row;
    Activation h = row_input(ctx, io).h.activation();
    if (!io.begins_with_row) {
      x = ctx.plan.scratch("x", ctx.max_rows * row_bytes);
      ctx.role = "token_embd";
      DP_CHECK(kernels::record(
          ctx, kernels::Embed{
                   .table = embedding_, .tokens = io.tokens, .y = x, .scale = embedding_scale()}));  // [R, H]
      h = activation_for(ctx, "attn_in", layers_[0].qkv);
      ctx.role = tensor_label(TensorId::kAttentionNorm, 0);
      DP_CHECK(norm(ctx, {.x = x, .weight = layers_[0].attention_norm, .y = h}));  // [R, H]
    }
    for (uint32_t i = 0; i < c_.n_layers; ++i) {
      const Layer& layer = layers_[i];
      TensorView branch;
      DP_TRY(branch, attention(ctx, io, h, x, i));  // [R, H]
      ctx.role = tensor_label(TensorId::kPostAttentionNorm, i);
      const bool joins = wants_q8(ctx, layer.down) && joins_norm(ctx, layer.gate_up, c_.activation);
      DP_TRY(h, join(ctx, x, branch, layer.post_attention_norm, layer.ffn_norm, layer.gate_up, joins));
      DP_TRY(branch, feed_forward(ctx, h, i));  // [R, H]
      ctx.role = tensor_label(TensorId::kPostFfnNorm, i);
      if (i + 1 == c_.n_layers) return head(ctx, io, x, branch);
      const Layer& next = layers_[i + 1];
      DP_TRY(h, join(ctx, x, branch, layer.post_ffn_norm, next.attention_norm, next.qkv,
                     joins_norm(ctx, next.qkv, ActivationFn::kNone)));  // [R, H]
    }
    return Logits{};
  }

 private:
  float embedding_scale() const { return std::sqrt(static_cast<float>(c_.hidden_dim)); }

  Task<Result<void>> load_layer(WeightLoader& loader, uint32_t i) {
    Layer& layer = layers_[i];
    DP_CO_TRY(layer.attention_norm,
              co_await loader.norm(formats::stored_tensor(c_, TensorId::kAttentionNorm, i)));
    DP_CO_TRY(layer.qkv, co_await loader.projection(formats::stored_tensors(c_, kQkv, i)));
    DP_CO_TRY(layer.qk_norms, co_await loader.norms(formats::stored_tensors(c_, kQkNorms, i)));
    DP_CO_TRY(layer.attention_out, co_await loader.projection(formats::stored_tensors(c_, kAttentionOut, i)));
    DP_CO_TRY(layer.post_attention_norm,
              co_await loader.norm(formats::stored_tensor(c_, TensorId::kPostAttentionNorm, i)));
    DP_CO_TRY(layer.ffn_norm, co_await loader.norm(formats::stored_tensor(c_, TensorId::kFfnNorm, i)));
    DP_CO_TRY(layer.gate_up, co_await loader.projection(formats::stored_tensors(c_, kGateUp, i)));
    DP_CO_TRY(layer.down, co_await loader.projection(formats::stored_tensors(c_, kDown, i)));
    DP_CO_TRY(layer.post_ffn_norm,
              co_await loader.norm(formats::stored_tensor(c_, TensorId::kPostFfnNorm, i)));
    co_return Result<void>();
  }

  Task<Result<Rope>> load_rope(WeightLoader& loader, const formats::RopeConfig& config) const {
    std::vector<float> divisors;
    if (!config.frequency_divisors.empty()) {
      DP_CO_TRY(divisors, co_await loader.host_vector(config.frequency_divisors));
    }
    DP_CO_TRY(const formats::RopeFrequencies frequencies,
              formats::rope_frequencies(config, ctx_len_, c_.ctx_len, divisors));
    Rope rope{.table = {}, .attention_factor = frequencies.attention_factor};
    DP_CO_TRY(rope.table,
              co_await loader.values("rope_table", kernels::make_rope_table(frequencies.inv_freq)));
    co_return rope;
  }

  // Scratch for what `reader` reads, in the forms it wants.
  static Activation activation_for(kernels::Context& ctx, const char* label, const Projection& reader) {
    Activation a{.f32 = ctx.plan.scratch(label, static_cast<uint64_t>(ctx.max_rows) * reader.k * 4)};
    add_forms(ctx, reader, reader.k, label, a);
    return a;
  }

  Result<void> norm(kernels::Context& ctx, kernels::RmsNorm op) const {
    op.n = c_.hidden_dim;
    op.eps = c_.norm_eps;
    return kernels::record(ctx, op);
  }

  // x += norm(branch), and what `reader` reads of it: made by the reader itself (then into another buffer, which x is
  // from here on) or by a norm of its own.
  Result<Activation> join(kernels::Context& ctx, TensorView& x, TensorView branch, TensorView add_weight,
                          TensorView weight, const Projection& reader, bool by_reader) const {
    Activation h;
    if (by_reader) {
      const TensorView residual = x;
      x = ctx.plan.scratch("x", static_cast<uint64_t>(c_.hidden_dim) * 4);
      h.joined = {.residual = residual,
                  .branch = branch,
                  .add_weight = add_weight,
                  .weight = weight,
                  .x = x,
                  .eps = c_.norm_eps};
      return h;
    }
    h = activation_for(ctx, "normed", reader);
    DP_CHECK(norm(ctx, {.x = x, .add = branch, .add_weight = add_weight, .weight = weight, .y = h}));
    return h;
  }

  // What the layer adds to the residual x, before its norm. h: made of x, or making it.
  Result<TensorView> attention(kernels::Context& ctx, const StepIo& io, const Activation& h, TensorView x,
                               uint32_t i) const {
    const Layer& layer = layers_[i];
    const uint32_t q_dim = c_.n_heads * c_.head_dim;
    const uint64_t rows = ctx.max_rows;
    const bool slides = formats::is_sliding_layer(c_, i);
    const Rope& rope = slides ? local_rope_ : global_rope_;
    const formats::RopeConfig& rope_config = slides ? c_.local_rope : c_.rope;

    ctx.role = format_text("blk.%u.attn_qkv", i);
    const TensorView qkv = ctx.plan.scratch("qkv", rows * layer.qkv.n * 4);
    DP_CHECK(model::record(ctx, layer.qkv, h, qkv, /*accumulate=*/false));  // [R, Q + 2K]
    DP_CHECK(keep_hidden(ctx, io, x, c_.hidden_dim, i));

    ctx.role = format_text("blk.%u.attention", i);
    const TensorView q = ctx.plan.scratch("q", rows * q_dim * 4);
    const kernels::RopeKv rope_kv{.qkv = qkv,
                                  .q_out = q,
                                  .cache = io.cache[i],
                                  .table = rope.table,
                                  .norms = layer.qk_norms,
                                  .norm_eps = c_.norm_eps,
                                  .n_heads = c_.n_heads,
                                  .rotary_dim = rope_config.rotary_dim,
                                  .interleaved = rope_config.pairing == formats::RopePairing::kGptJ,
                                  .attention_factor = rope.attention_factor};
    Activation y = activation_for(ctx, "attn_y", layer.attention_out);
    kernels::SplitRow splits;
    const bool joins = joins_splits(ctx, layer.attention_out);
    DP_CHECK(kernels::record(ctx, kernels::Attention{.q = q,
                                                     .cache = io.cache[i],
                                                     .y = y,
                                                     .n_heads = c_.n_heads,
                                                     .scale = c_.attention_scale,
                                                     .window = slides ? c_.sliding_window : 0,
                                                     .softcap = c_.attention_softcap,
                                                     .sinks = {},
                                                     .rope = &rope_kv,
                                                     .max_keys = io.max_keys,
                                                     .splits = joins ? &splits : nullptr}));  // [R, Q]
    if (splits.valid()) y = Activation{.splits = splits};

    ctx.role = tensor_label(TensorId::kAttentionOut, i);
    const TensorView branch = ctx.plan.scratch("attn_out", rows * c_.hidden_dim * 4);
    DP_CHECK(model::record(ctx, layer.attention_out, y, branch, /*accumulate=*/false));  // [R, H]
    return branch;
  }

  Result<TensorView> feed_forward(kernels::Context& ctx, const Activation& h, uint32_t i) const {
    const Layer& layer = layers_[i];
    ctx.role = format_text("blk.%u.ffn_gate_up", i);
    const Activation y = gated_scratch(ctx, layer.gate_up, layer.down, c_.activation);
    DP_CHECK(record_gated(ctx, layer.gate_up, h, y, c_.activation));  // [R, F]

    ctx.role = tensor_label(TensorId::kDown, i);
    const TensorView branch =
        ctx.plan.scratch("ffn_out", static_cast<uint64_t>(ctx.max_rows) * c_.hidden_dim * 4);
    DP_CHECK(model::record(ctx, layer.down, y, branch, /*accumulate=*/false));  // [R, H]
    return branch;
  }

  // The last branch joins the residual in the final norm; without a head nobody would read either.
  Result<Logits> head(kernels::Context& ctx, const StepIo& io, TensorView x, TensorView branch) const {
    if (io.head == Head::kNone) return Logits{};
    const bool last_row = io.head == Head::kLast;
    kernels::Context head_ctx = ctx;  // one row from here on
    if (last_row) head_ctx.max_rows = 1;
    const Activation h = activation_for(head_ctx, "final", head_);
    ctx.role = tensor_label(TensorId::kFinalNorm, 0);
    DP_CHECK(norm(ctx, {.x = x,
                        .add = branch,
                        .add_weight = layers_.back().post_ffn_norm,
                        .weight = final_norm_,
                        .y = h,
                        .last_row_only = last_row}));  // [1 or R, H]
    DP_CHECK(keep_hidden(ctx, io, x, c_.hidden_dim, c_.n_layers));
    head_ctx.role = tensor_label(TensorId::kOutput, 0);
    return record_head(head_ctx, head_, h, io.logits, io.greedy);  // [1 or R, V]
  }

  const formats::ModelConfig c_;
  const uint32_t ctx_len_;
  kernels::Weight embedding_;
  Projection head_;
  std::vector<Layer> layers_;
  TensorView final_norm_;
  Rope global_rope_, local_rope_;
};

}  // namespace

std::unique_ptr<FamilyModel> make_gemma3(const formats::ModelConfig& config, uint32_t ctx_len) {
  return std::make_unique<Gemma3>(config, ctx_len);
}

}  // namespace doppler::model
