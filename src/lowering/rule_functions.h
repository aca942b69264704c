// The functions of the table in rules.cpp; each is in the file of its name, those of the plain rules in plain.cpp.
#pragma once

#include "lowering/lowering.h"

namespace doppler::lowering {

// Routes that the host reads: their experts lie in slots.
bool is_paged(const Lowering& l, Value routes);

Result<Outcome> lower_persistent_layers(Lowering& l, uint32_t node);
Result<Outcome> lower_step_tail(Lowering& l, uint32_t node);
Result<Outcome> lower_tile_argmax(Lowering& l, uint32_t node);
Result<Outcome> lower_gated_epilogue(Lowering& l, uint32_t node);
Result<Outcome> lower_gated_adapters(Lowering& l, uint32_t node);
Result<Outcome> lower_gated_experts(Lowering& l, uint32_t node);
Result<Outcome> lower_expert_sum_norm(Lowering& l, uint32_t node);
Result<Outcome> lower_delta_step(Lowering& l, uint32_t node);
Result<Outcome> lower_multiply_epilogue(Lowering& l, uint32_t node);
Result<Outcome> lower_deferred_rms_norm(Lowering& l, uint32_t node);
Result<Outcome> lower_split_sums(Lowering& l, uint32_t node);
Result<Outcome> lower_residual_epilogue(Lowering& l, uint32_t node);
Result<Outcome> lower_activation_epilogue(Lowering& l, uint32_t node);
Result<Outcome> lower_paired_products(Lowering& l, uint32_t node);
Result<Outcome> lower_add_rms_norm_prologue(Lowering& l, uint32_t node);
Result<Outcome> lower_add_rms_norm(Lowering& l, uint32_t node);
Result<Outcome> lower_dead_attention(Lowering& l, uint32_t node);
Result<Outcome> lower_gated_attention(Lowering& l, uint32_t node);
Result<Outcome> lower_split_k_reduction(Lowering& l, uint32_t node);
Result<Outcome> lower_fused_rope(Lowering& l, uint32_t node);

Result<Outcome> lower_embed(Lowering& l, uint32_t node);
Result<Outcome> lower_rms_norm(Lowering& l, uint32_t node);
Result<Outcome> lower_linear(Lowering& l, uint32_t node);
Result<Outcome> lower_head_norm(Lowering& l, uint32_t node);
Result<Outcome> lower_rope(Lowering& l, uint32_t node);
Result<Outcome> lower_attention(Lowering& l, uint32_t node);
Result<Outcome> lower_gated(Lowering& l, uint32_t node);
Result<Outcome> lower_add(Lowering& l, uint32_t node);
Result<Outcome> lower_scale(Lowering& l, uint32_t node);
Result<Outcome> lower_query_scale(Lowering& l, uint32_t node);
Result<Outcome> lower_xielu(Lowering& l, uint32_t node);
Result<Outcome> lower_layer_norm(Lowering& l, uint32_t node);
Result<Outcome> lower_positions(Lowering& l, uint32_t node);
Result<Outcome> lower_activate(Lowering& l, uint32_t node);
Result<Outcome> lower_logits_rows(Lowering& l, uint32_t node);
Result<Outcome> lower_route(Lowering& l, uint32_t node);
Result<Outcome> lower_expert_linear(Lowering& l, uint32_t node);
Result<Outcome> lower_expert_sum(Lowering& l, uint32_t node);
Result<Outcome> lower_causal_conv(Lowering& l, uint32_t node);
Result<Outcome> lower_gated_delta(Lowering& l, uint32_t node);
Result<Outcome> lower_mamba2(Lowering& l, uint32_t node);
Result<Outcome> lower_gated_norm(Lowering& l, uint32_t node);
Result<Outcome> lower_output_gate(Lowering& l, uint32_t node);
Result<Outcome> lower_every_expert(Lowering& l, uint32_t node);
Result<Outcome> lower_head_part(Lowering& l, uint32_t node);
Result<Outcome> lower_latent_heads(Lowering& l, uint32_t node);
Result<Outcome> lower_multiply(Lowering& l, uint32_t node);
Result<Outcome> lower_slice(Lowering& l, uint32_t node);
Result<Outcome> lower_input(Lowering& l, uint32_t node);
Result<Outcome> lower_table_rows(Lowering& l, uint32_t node);
Result<Outcome> lower_image_rows(Lowering& l, uint32_t node);
Result<Outcome> lower_mean_parts(Lowering& l, uint32_t node);
Result<Outcome> lower_clamp(Lowering& l, uint32_t node);
Result<Outcome> lower_standardise(Lowering& l, uint32_t node);
Result<Outcome> lower_concat(Lowering& l, uint32_t node);
Result<Outcome> lower_sparsify(Lowering& l, uint32_t node);
Result<Outcome> lower_altup_match(Lowering& l, uint32_t node);
Result<Outcome> lower_altup_predict(Lowering& l, uint32_t node);
Result<Outcome> lower_altup_correct(Lowering& l, uint32_t node);

}  // namespace doppler::lowering
