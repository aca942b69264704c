// The table of rules, in the order in which they are tried at a node; the plain rule of each operation is behind the
// others. What each gained, and where that was measured: docs/design/lowering.md.
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

constexpr uint32_t kEmbed = at(OpKind::kEmbed), kNorm = at(OpKind::kRmsNorm), kLinear = at(OpKind::kLinear),
                   kAdd = at(OpKind::kAdd), kAttention = at(OpKind::kAttention), kGated = at(OpKind::kGated);

constexpr Rule kRules[] = {
    {"persistent_layers", "all layers of a decode step -> one dispatch whose workgroups are co-resident",
     kEmbed, lower_persistent_layers},
    {"step_tail",
     "embed, rms_norm -> made behind the step before, in one dispatch with the choice of its token", kEmbed,
     lower_step_tail},
    {"tile_argmax", "the linear of greedy logits -> the best output of each tile instead of the logits",
     kLinear, lower_tile_argmax},
    {"gated_epilogue", "linear, gated -> one product with the gate as epilogue", kLinear,
     lower_gated_epilogue},
    {"gated_experts", "expert_linear, gated -> one product with the gate as epilogue",
     at(OpKind::kExpertLinear), lower_gated_experts},
    {"expert_sum_norm", "expert_sum, add, rms_norm -> one dispatch", at(OpKind::kExpertSum),
     lower_expert_sum_norm},
    {"delta_step", "causal_conv, gated_delta, gated_norm of single rows -> one dispatch",
     at(OpKind::kCausalConv), lower_delta_step},
    {"output_gate_epilogue",
     "linear, output_gate or multiply -> one product behind what it gates, with the gate as epilogue",
     kLinear | at(OpKind::kOutputGate) | at(OpKind::kMultiply), lower_output_gate_epilogue},
    {"deferred_rms_norm",
     "linear, add, rms_norm -> the product leaves weighted values and sums of squares, its readers divide",
     kLinear, lower_deferred_rms_norm},
    {"residual_epilogue", "linear, add -> one product that adds to the residual", kLinear,
     lower_residual_epilogue},
    {"paired_products", "a linear in two number formats -> one dispatch", kLinear, lower_paired_products},
    {"add_rms_norm_prologue", "rms_norm, add, rms_norm -> made by the product that reads it", kNorm,
     lower_add_rms_norm_prologue},
    {"add_rms_norm",
     "rms_norm, add, multiply by one number, rms_norm: a sum and what there is around it -> one dispatch",
     kNorm | kAdd, lower_add_rms_norm},
    {"dead_values", "what nothing reads -> not made; attention without readers -> its cache is filled",
     kAttention, lower_dead_attention},
    {"split_k_reduction", "attention, linear -> splits of the keys, reduced by the product", kAttention,
     lower_split_k_reduction},
    {"fused_rope", "head_norm, rope, attention -> one dispatch that fills the cache too", kAttention,
     lower_fused_rope},
    {"producer_forms", "values that products read in 8 bits or f16 tiles -> written so by what makes them"},
    {"stacked_products", "matrices that read the same value, in one number format -> one weight, at load"},

    {"embed", "embed -> embed", kEmbed, lower_embed, true},
    {"rms_norm", "rms_norm -> rms_norm", kNorm, lower_rms_norm, true},
    {"linear", "linear -> a product for each number format", kLinear, lower_linear, true},
    {"head_norm", "head_norm -> done by rope_kv or attention; behind a rotation in place",
     at(OpKind::kHeadNorm), lower_head_norm, true},
    {"rope", "rope -> done by rope_kv or attention", at(OpKind::kRope), lower_rope, true},
    {"attention", "attention -> rope_kv, then attention", kAttention, lower_attention, true},
    {"gated", "gated -> glu", kGated, lower_gated, true},
    {"add", "add -> add", kAdd, lower_add, true},
    {"scale", "scale -> scale, in place", at(OpKind::kScale), lower_scale, true},
    {"query_scale", "query_scale -> a rotation of its own, in place", at(OpKind::kQueryScale),
     lower_query_scale, true},
    {"xielu", "xielu -> xielu, in place", at(OpKind::kXielu), lower_xielu, true},
    {"layer_norm", "layer_norm -> layer_norm", at(OpKind::kLayerNorm), lower_layer_norm, true},
    {"positions", "positions -> positions, in place", at(OpKind::kPositions), lower_positions, true},
    {"activate", "activate -> activate, in place", at(OpKind::kActivate), lower_activate, true},
    {"logits_rows", "logits_rows -> told to its readers", at(OpKind::kLogitsRows), lower_logits_rows, true},
    {"route", "route -> route", at(OpKind::kRoute), lower_route, true},
    {"expert_linear", "expert_linear -> a product for each number format, whose rows find their experts",
     at(OpKind::kExpertLinear), lower_expert_linear, true},
    {"expert_sum", "expert_sum -> expert_sum", at(OpKind::kExpertSum), lower_expert_sum, true},
    {"causal_conv", "causal_conv -> causal_conv", at(OpKind::kCausalConv), lower_causal_conv, true},
    {"gated_delta", "gated_delta -> scan", at(OpKind::kGatedDelta), lower_gated_delta, true},
    {"mamba2", "mamba2 -> scan", at(OpKind::kMamba2), lower_mamba2, true},
    {"gated_norm", "gated_norm -> gated_norm", at(OpKind::kGatedNorm), lower_gated_norm, true},
    {"output_gate", "output_gate -> output_gate", at(OpKind::kOutputGate), lower_output_gate, true},
    {"every_expert", "every_expert -> every_expert, once a plan", at(OpKind::kEveryExpert),
     lower_every_expert, true},
    {"head_part", "head_part -> head_part", at(OpKind::kHeadPart), lower_head_part, true},
    {"latent_heads", "latent_heads -> latent_heads", at(OpKind::kLatentHeads), lower_latent_heads, true},
    {"multiply", "multiply -> multiply", at(OpKind::kMultiply), lower_multiply, true},
    {"slice", "slice -> told to its readers", at(OpKind::kSlice), lower_slice, true},
    {"sparsify", "sparsify -> sparsify, in place", at(OpKind::kSparsify), lower_sparsify, true},
    {"altup_match", "altup_match -> altup_match", at(OpKind::kAltupMatch), lower_altup_match, true},
    {"altup_predict", "altup_predict -> altup_predict", at(OpKind::kAltupPredict), lower_altup_predict, true},
    {"altup_correct", "altup_correct -> altup_correct", at(OpKind::kAltupCorrect), lower_altup_correct, true},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

}  // namespace doppler::lowering
