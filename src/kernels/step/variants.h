// The rows of this folder's operations, for record() and for the tests that forces each.
#pragma once

#include <span>

#include "kernels/step/draft.h"
#include "kernels/step/lookup.h"
#include "kernels/step/next.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<DraftBegin>> draft_begin_variants();
std::span<const Variant<DraftEnd>> draft_end_variants();
std::span<const Variant<LookupDrafts>> lookup_drafts_variants();
std::span<const Variant<Next>> next_variants();
std::span<const Variant<NextTokens>> next_tokens_variants();
std::span<const Variant<TextFromRing>> text_from_ring_variants();

}  // namespace doppler::kernels
