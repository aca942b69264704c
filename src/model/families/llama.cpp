// The Llama family (Touvron et al. 2023): pre-norm RMSNorm, rotary attention with grouped heads, gated feed-forward.
// Answers for llama and mistral (whose window is one number in the config). R rows, H hidden, F feed-forward,
// D = head_dim, Q = n_heads * D, K = n_kv_heads * D.
#include "base/tensor_id.h"
#include "formats/architectures/rope_frequencies.h"
#include "kernels/attention/attention.h"
#include "kernels/embed/embed.h"
#include "kernels/persistent/layers.h"
#include "model/families/family.h"

namespace doppler::model {
namespace {

using kernels::Activation;
using kernels::TensorView;

constexpr TensorId kQkv[] = {TensorId::kQ, TensorId::kK, TensorId::kV};
constexpr TensorId kAttentionOut[] = {TensorId::kAttentionOut};
constexpr TensorId kGateUp[] = {TensorId::kGate, TensorId::kUp};
constexpr TensorId kDown[] = {TensorId::kDown};

struct Layer {
  TensorView attention_norm, ffn_norm;
  Projection qkv, attention_out, gate_up, down;
};

class Llama final : public FamilyModel {
 public:
  Llama(const formats::ModelConfig& config, uint32_t ctx_len) : c_(config), ctx_len_(ctx_len) {}

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
    head_ = {.parts = {{.weight = std::move(output)}}, .n = c_.vocab_size, .k = c_.hidden_dim};
    co_return co_await load_rope(loader);
  }

  kernels::EmbedNorm row_input(const kernels::Context& ctx, const StepIo& io) const override {
    return {.table = embedding_,
            .norm_weight = layers_[0].attention_norm,
            .eps = c_.norm_eps,
            .x = io.row,
            .h = {.buffer = io.normed_row, .k = c_.hidden_dim, .q8 = wants_q8(ctx, layers_[0].qkv)},
            .token = {}};
  }

  Result<Logits> record(kernels::Context& ctx, const StepIo& io) override {
    const uint64_t rows = ctx.max_rows;
    TensorView x = io.row;
    if (io.persistent.exchange.valid()) {
      const kernels::PersistentLayers op = persistent_layers(ctx, io);
      ctx.role = "layers";
      DP_TRY(const bool chosen, kernels::chooses_persistent(ctx, op));
      if (chosen) return record_persistent(ctx, io, op);
    }
    Activation h = row_input(ctx, io).h.activation();
    if (!io.begins_with_row) {
      x = ctx.plan.scratch("x", rows * c_.hidden_dim * 4);
      ctx.role = "token_embd";
      DP_CHECK(
          kernels::record(ctx, kernels::Embed{.table = embedding_, .tokens = io.tokens, .y = x}));  // [R, H]
      DP_CHECK(keep_hidden(ctx, io, x, c_.hidden_dim, 0));
      DP_TRY(h, record_norm(ctx, x, before_attention(0)));  // [R, H]
    }
    for (uint32_t i = 0; i < c_.n_layers; ++i) {
      const Layer& layer = layers_[i];
      DP_TRY(const Activation y, attention(ctx, io, h, i));  // [R, Q]
      ctx.role = tensor_label(TensorId::kAttentionOut, i);
      DP_TRY(h, record_add_norm(ctx, layer.attention_out, y, x, before_ffn(i)));  // [R, H]
      ctx.role = format_text("blk.%u.ffn_gate_up", i);
      const Activation g = gated_scratch(ctx, layer.gate_up, layer.down, c_.activation);
      DP_CHECK(record_gated(ctx, layer.gate_up, h, g, c_.activation));  // [R, F]
      ctx.role = tensor_label(TensorId::kDown, i);
      if (i + 1 < c_.n_layers) {
        DP_TRY(h, record_add_norm(ctx, layer.down, g, x, before_attention(i + 1)));  // [R, H]
      } else if (io.head == Head::kNone) {
        DP_CHECK(model::record(ctx, layer.down, g, x, /*accumulate=*/true));
      } else {
        DP_TRY(h, record_add_norm(ctx, layer.down, g, x, before_head(io)));  // [1 or R, H]
      }
      DP_CHECK(keep_hidden(ctx, io, x, c_.hidden_dim, i + 1));
    }
    if (io.head == Head::kNone) return Logits{};
    return head(ctx, io, h);
  }

 private:
  Result<Logits> head(kernels::Context& ctx, const StepIo& io, const Activation& h) const {
    ctx.role = tensor_label(TensorId::kOutput, 0);
    kernels::Context head_ctx = ctx;
    if (io.head == Head::kLast) head_ctx.max_rows = 1;
    return record_head(head_ctx, head_, h, io.logits, io.greedy);  // [1 or R, V]
  }

  // All layers of a decode step in one dispatch.
  kernels::PersistentLayers persistent_layers(kernels::Context& ctx, const StepIo& io) const {
    kernels::PersistentLayers op{
        .layers = {},
        .first_norm = layers_[0].attention_norm,
        .row = io.row,
        .next = {.buffer = ctx.plan.scratch("begun_norm", kernels::BegunNorm::bytes(c_.hidden_dim, true)),
                 .weight = final_norm_,
                 .k = c_.hidden_dim,
                 .eps = c_.norm_eps,
                 .q8 = true},
        .exchange = io.persistent.exchange,
        .groups = io.persistent.groups};
    op.n_heads = c_.n_heads;
    op.hidden_dim = c_.hidden_dim;
    op.ffn_dim = c_.ffn_dim;
    op.norm_eps = c_.norm_eps;
    op.activate = c_.activation;
    op.scale = c_.attention_scale;
    op.window = c_.sliding_window;
    op.max_keys = io.max_keys;
    op.table = rope_table_;
    op.rotary_dim = c_.rope.rotary_dim;
    op.interleaved = c_.rope.pairing == formats::RopePairing::kGptJ;
    op.attention_factor = attention_factor_;
    for (uint32_t i = 0; i < c_.n_layers; ++i) {
      const Layer& layer = layers_[i];
      kernels::PersistentLayer one{
          .out = &layer.attention_out.parts[0].weight,
          .gate_up = layer.gate_up.parts.size() == 1 ? &layer.gate_up.parts[0].weight : nullptr,
          .down = &layer.down.parts[0].weight,
          .ffn_norm = layer.ffn_norm,
          .next_norm = i + 1 < c_.n_layers ? layers_[i + 1].attention_norm : final_norm_,
          .cache = io.cache[i]};
      for (const Projection* projection : {&layer.qkv, &layer.attention_out, &layer.gate_up, &layer.down}) {
        for (const Projection::Part& part : projection->parts)
          one.has_bias = one.has_bias || part.bias.valid();
      }
      for (const Projection::Part& part : layer.qkv.parts) one.qkv.push_back(&part.weight);
      op.layers.push_back(std::move(one));
    }
    return op;
  }

  Result<Logits> record_persistent(kernels::Context& ctx, const StepIo& io,
                                   const kernels::PersistentLayers& op) const {
    DP_CHECK(kernels::record(ctx, op));
    if (kernels::finishes_norm(ctx, head_.parts[0].weight) && model::wants_q8(ctx, head_)) {
      return head(ctx, io, op.next.activation());
    }
    DP_TRY(const Activation h, record_norm(ctx, io.row, before_head(io)));
    return head(ctx, io, h);
  }

  Task<Result<void>> load_layer(WeightLoader& loader, uint32_t i) {
    Layer& layer = layers_[i];
    DP_CO_CHECK(co_await loader.begin_layer(i));
    DP_CO_TRY(layer.attention_norm,
              co_await loader.norm(formats::stored_tensor(c_, TensorId::kAttentionNorm, i)));
    DP_CO_TRY(layer.qkv, co_await loader.projection(formats::stored_tensors(c_, kQkv, i)));
    DP_CO_TRY(layer.attention_out, co_await loader.projection(formats::stored_tensors(c_, kAttentionOut, i)));
    DP_CO_TRY(layer.ffn_norm, co_await loader.norm(formats::stored_tensor(c_, TensorId::kFfnNorm, i)));
    DP_CO_TRY(layer.gate_up, co_await loader.projection(formats::stored_tensors(c_, kGateUp, i)));
    DP_CO_TRY(layer.down, co_await loader.projection(formats::stored_tensors(c_, kDown, i)));
    co_return Result<void>();
  }

  Task<Result<void>> load_rope(WeightLoader& loader) {
    std::vector<float> divisors;
    if (!c_.rope.frequency_divisors.empty()) {
      DP_CO_TRY(divisors, co_await loader.host_vector(c_.rope.frequency_divisors));
    }
    DP_CO_TRY(const formats::RopeFrequencies frequencies,
              formats::rope_frequencies(c_.rope, ctx_len_, c_.ctx_len, divisors));
    attention_factor_ = frequencies.attention_factor;
    DP_CO_TRY(rope_table_,
              co_await loader.values("rope_table", kernels::make_rope_table(frequencies.inv_freq)));
    co_return Result<void>();
  }

  NormedReader before_attention(uint32_t i) const {
    return {.weight = layers_[i].attention_norm,
            .eps = c_.norm_eps,
            .reader = layers_[i].qkv,
            .role = tensor_label(TensorId::kAttentionNorm, i)};
  }
  NormedReader before_ffn(uint32_t i) const {
    return {.weight = layers_[i].ffn_norm,
            .eps = c_.norm_eps,
            .reader = layers_[i].gate_up,
            .role = tensor_label(TensorId::kFfnNorm, i),
            .gate = c_.activation};
  }
  NormedReader before_head(const StepIo& io) const {
    return {.weight = final_norm_,
            .eps = c_.norm_eps,
            .reader = head_,
            .role = tensor_label(TensorId::kFinalNorm, 0),
            .last_row_only = io.head == Head::kLast};
  }

  // Rotation, cache and attention of the normalised h; the result in the forms that the output projection reads.
  Result<Activation> attention(kernels::Context& ctx, const StepIo& io, const Activation& h,
                               uint32_t i) const {
    const Layer& layer = layers_[i];
    const uint32_t q_dim = c_.n_heads * c_.head_dim;
    const uint64_t rows = ctx.max_rows;

    ctx.role = format_text("blk.%u.attn_qkv", i);
    const TensorView qkv = ctx.plan.scratch("qkv", rows * layer.qkv.n * 4);
    DP_CHECK(model::record(ctx, layer.qkv, h, qkv, /*accumulate=*/false));  // [R, Q + 2K]

    ctx.role = format_text("blk.%u.attention", i);
    const TensorView q = ctx.plan.scratch("q", rows * q_dim * 4);
    const kernels::RopeKv rope{.qkv = qkv,
                               .q_out = q,
                               .cache = io.cache[i],
                               .table = rope_table_,
                               .n_heads = c_.n_heads,
                               .rotary_dim = c_.rope.rotary_dim,
                               .interleaved = c_.rope.pairing == formats::RopePairing::kGptJ,
                               .attention_factor = attention_factor_};
    Activation y{.f32 = ctx.plan.scratch("attn_y", rows * q_dim * 4)};
    add_forms(ctx, layer.attention_out, q_dim, "attn_y", y);
    kernels::SplitRow splits;
    const bool joins = joins_splits(ctx, layer.attention_out);
    DP_CHECK(kernels::record(ctx, kernels::Attention{.q = q,
                                                     .cache = io.cache[i],
                                                     .y = y,
                                                     .n_heads = c_.n_heads,
                                                     .scale = c_.attention_scale,
                                                     .window = c_.sliding_window,
                                                     .softcap = 0,
                                                     .sinks = {},
                                                     .rope = &rope,
                                                     .max_keys = io.max_keys,
                                                     .splits = joins ? &splits : nullptr}));  // [R, Q]
    if (splits.valid()) y = Activation{.splits = splits};
    return y;
  }

  const formats::ModelConfig c_;
  const uint32_t ctx_len_;
  kernels::Weight embedding_;
  Projection head_;
  std::vector<Layer> layers_;
  TensorView final_norm_, rope_table_;
  float attention_factor_ = 1.0f;
};

}  // namespace

std::unique_ptr<FamilyModel> make_llama(const formats::ModelConfig& config, uint32_t ctx_len) {
  return std::make_unique<Llama>(config, ctx_len);
}

}  // namespace doppler::model
