// Records products for kernel tests: chosen and recorded in one call, while lowering does it in two steps.
#pragma once

#include "kernels/linear/linear.h"

namespace doppler::kernels::testing {

// Resolves the product and records it. A gate that the variant refuses becomes two operations, as in lowering: the
// plain product, then Glu.
Result<void> record_linear(Context& ctx, const Linear& op);
Result<void> record_linear(Context& ctx, const LinearPair& op);

// The reasons of the variant that resolve_product() takes; the error's sentence where it takes none.
std::string prologue_refusal(const Context& ctx, const Weight& weight, PrologueKind kind,
                             ActivationFn gate = ActivationFn::kNone);
std::string epilogue_refusal(const Context& ctx, const Weight& weight, EpilogueKind kind,
                             ActivationFn gate = ActivationFn::kNone);
std::string pair_refusal(const Context& ctx, const Weight& first, const Weight& second,
                         const PairNeeds& needs);

// A policy that takes this matvec of a format: "matvec.<format><suffix>".
Policy forced_matvec(WeightFormat format, std::string_view suffix);

}  // namespace doppler::kernels::testing
