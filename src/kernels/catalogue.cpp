#include "kernels/catalogue.h"

#include <map>

#include "kernels/add/variants.h"
#include "kernels/altup/variants.h"
#include "kernels/attention/variants.h"
#include "kernels/embed/positions.h"
#include "kernels/embed/variants.h"
#include "kernels/fragment_f16/variants.h"
#include "kernels/glu/variants.h"
#include "kernels/heads/variants.h"
#include "kernels/image_rows/variants.h"
#include "kernels/latent/variants.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/linear/product.h"
#include "kernels/linear/repack/repack.h"
#include "kernels/low_rank/variants.h"
#include "kernels/moe/variants.h"
#include "kernels/persistent/layers.h"
#include "kernels/pointwise/variants.h"
#include "kernels/quantize_q8/variants.h"
#include "kernels/recurrent/variants.h"
#include "kernels/rms_norm/variants.h"
#include "kernels/rope/variants.h"
#include "kernels/sample/variants.h"
#include "kernels/step/variants.h"

namespace doppler::kernels {
namespace {

// A model of 8 billion parameters at the default context and chunk.
constexpr uint32_t kHidden = 4096;
constexpr uint32_t kHeads = 32, kKvHeads = 8, kHeadDim = 128;
constexpr uint32_t kContext = 4096;
constexpr uint32_t kChunk = 512;

std::vector<std::string> need_names(uint32_t needs) {
  static constexpr std::pair<Need, const char*> kNames[] = {{kNeedF16, "f16"},
                                                            {kNeedSubgroups, "subgroups"},
                                                            {kNeedDp4a, "dp4a"},
                                                            {kNeedMatrixF16, "matrix"},
                                                            {kNeedTint, "Tint"}};
  std::vector<std::string> names;
  for (const auto& [need, name] : kNames) {
    if (needs & need) names.emplace_back(name);
  }
  return names;
}

Attention typical_attention() {
  Attention op;
  op.cache.n_kv_heads = kKvHeads;
  op.cache.ctx_len = kContext;
  op.cache.head_dim = kHeadDim;
  op.n_heads = kHeads;
  return op;
}

}  // namespace

const char* typical_shape_text() {
  return "weights of 4096 x 4096, prefill chunks of 512, 32 heads on 8 of 128 dimensions, 4096 tokens";
}

std::vector<CatalogueRow> list_variants(const gpu::Caps& caps, const Policy& policy) {
  std::vector<CatalogueRow> out;
  const auto add = [&](std::string_view operation, auto rows, const auto& shape) {
    for (const auto& row : rows) {
      out.push_back({.operation = std::string(operation),
                     .variant = std::string(row.name),
                     .lane = row.lane,
                     .needs = need_names(row.needs),
                     .refusal = refuse(row, shape, caps, policy)});
    }
  };
  for (const uint32_t rows : {1u, kMaxSkinnyRows, kMaxNarrowRows, kChunk}) {
    for (int format = 0; format < kWeightFormatCount; ++format) {
      const ProductShape shape = {
          .format = static_cast<WeightFormat>(format), .n = kHidden, .k = kHidden, .max_rows = rows};
      add(product_operation(shape), product_variants(shape), shape);
    }
  }
  add("attention_decode", attention_decode_variants(), typical_attention());
  add("attention_skinny", attention_skinny_variants(), typical_attention());
  add("attention_prefill", attention_prefill_variants(), typical_attention());
  add("attention_unpack", attention_unpack_variants(), typical_attention());
  add("rms_norm", rms_norm_variants(), NormShape{kHidden});
  add("rope_kv", rope_kv_variants(), RopeKv{});
  add("add", add_variants(), Add{});
  add("glu", glu_variants(), Glu{});
  add("scale", scale_variants(), Scale{});
  add("xielu", xielu_variants(), Xielu{});
  add("multiply", multiply_variants(), Multiply{});
  add("concat", concat_variants(), Concat{});
  add("sparsify", sparsify_variants(), Sparsify{});
  add("altup_match", altup_match_variants(), AltupMatch{});
  add("altup_predict", altup_predict_variants(), AltupPredict{});
  add("altup_correct", altup_correct_variants(), AltupCorrect{});
  add("activate", activate_variants(), Activate{});
  add("layer_norm", layer_norm_variants(), LayerNorm{});
  add("positions", positions_variants(), Positions{});
  add("table_rows", table_rows_variants(), TableRows{});
  add("image_rows", image_rows_variants(), ImageRows{});
  add("patch_values", patch_values_variants(), PatchValues{});
  add("mean_parts", mean_parts_variants(), MeanParts{});
  add("clamp", clamp_variants(), Clamp{});
  add("standardise", standardise_variants(), Standardise{});
  add("head_norm", head_norm_variants(), HeadNorm{});
  add("rotate", rotate_variants(), Rotate{});
  add("head_part", head_part_variants(), HeadPart{});
  add("latent_heads", latent_heads_variants(), LatentHeads{});
  add("causal_conv", causal_conv_variants(), CausalConv{});
  add("scan", scan_variants(), Scan{});
  add("delta_step", delta_step_variants(), DeltaStep{});
  add("gated_norm", gated_norm_variants(), GatedNorm{});
  add("output_gate", output_gate_variants(), OutputGate{});
  add("route", route_variants(), Route{});
  add("group_routes", group_routes_variants(), GroupRoutes{});
  add("every_expert", every_expert_variants(), EveryExpert{});
  for (int format = 0; format < kWeightFormatCount; ++format) {
    const ProductShape shape = {
        .format = static_cast<WeightFormat>(format), .n = kHidden, .k = kHidden, .max_rows = 1};
    add(expert_operation(shape.format), expert_matvec_variants(shape.format), shape);
  }
  add("low_rank_down", low_rank_down_variants(), LowRankShape{});
  add("low_rank_up", low_rank_up_variants(), LowRankShape{});
  add("low_rank_gate", low_rank_gate_variants(), LowRankGate{});
  add("expert_sum", expert_sum_variants(), ExpertSum{});
  add("expert_norm", expert_norm_variants(), ExpertNorm{});
  add("quantize_q8", quantize_q8_variants(), QuantizeQ8{});
  add("fragment_f16", fragment_f16_variants(), FragmentF16{});
  const Weight no_table;
  add("embed", embed_variants(), Embed{.table = no_table, .tokens = {}, .y = {}});
  add("argmax", argmax_variants(), Sample{});
  add("sample", sample_variants(), Sample{});
  const Weight table{
      .format = WeightFormat::kTileQ6, .n = kHidden, .k = kHidden, .pieces = {{.rows = kHidden}}};
  const EmbedNorm input{.table = table};
  add("embed_norm", embed_norm_variants(), input);
  PersistentLayers layers;
  layers.unfit = "a probe at load counts the workgroups that are co-resident";
  add("decode_layers", decode_layers_variants(), layers);
  Next next{.sample = {}, .step = {}, .input = input};
  next.sample.greedy = true;
  next.sample.best = {.slot = 0};
  add("next", next_variants(), next);
  add("draft_begin", draft_begin_variants(), DraftBegin{});
  add("draft_end", draft_end_variants(), DraftEnd{});
  add("lookup_drafts", lookup_drafts_variants(), LookupDrafts{});
  add("next_tokens", next_tokens_variants(), NextTokens{});
  add("text_from_ring", text_from_ring_variants(), TextFromRing{});
  for (const RepackRow& row : repack_variants()) {
    Repack repack{.from = row.from, .to = *dtype_info(row.from).tiles};
    repack.k = kHidden;
    add(repack_operation(row.from), repack_variants(row.from), repack);
  }
  return out;
}

Result<void> check_forced_names(const gpu::Caps& caps, const Policy& policy) {
  if (policy.forced.empty()) return {};
  std::map<std::string, std::vector<std::string>> variants;  // by operation
  for (CatalogueRow& row : list_variants(caps, policy))
    variants[row.operation].push_back(std::move(row.variant));
  for (const auto& [operation, variant] : policy.forced) {
    if (const auto known = variants.find(operation); known != variants.end()) {
      DP_CHECK(check_forced(operation, variant, known->second));
      continue;
    }
    std::vector<std::string> names;
    for (const auto& [name, unused] : variants) names.push_back(name);
    const auto near = nearest(operation, names);
    return fail(ErrorKind::kInvalidInput,
                "There is no operation \"%s\" whose variant could be forced%s; doppler kernels lists all.",
                printable(operation).c_str(), near ? (" (did you mean " + *near + "?)").c_str() : "");
  }
  return {};
}

}  // namespace doppler::kernels
