// The common C++ of entries that import embed/embed_norm_row: the checks, the refusals, the constants.
#pragma once

#include <string>

#include "kernels/common/dispatch.h"
#include "kernels/embed/embed_norm.h"

namespace doppler::kernels {

// Everything but the token.
Result<void> check_embed_norm(const EmbedNorm& op);
// Why one workgroup cannot do it; "" if it can.
std::string refuse_embed_norm_row(const EmbedNorm& op, const gpu::Caps& caps);
// Invocations of the workgroup; `items`: what else it walks.
uint32_t embed_norm_workgroup(const gpu::Caps& caps, const EmbedNorm& op, uint32_t items);
// Fills in the constants and the weight fragment, and appends the bindings weights, scales, norm_weight, x and h.
void add_embed_norm(Launch& launch, const EmbedNorm& op);

}  // namespace doppler::kernels
