// Checks and records the drafter lookup.
#include "kernels/step/lookup.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/step_state.h"
#include "kernels/step/lookup_drafts.wgsl.h"
#include "kernels/step/lookup_match.wgsl.h"
#include "kernels/step/one_sequence_only.h"
#include "kernels/step/text_from_ring.wgsl.h"
#include "kernels/step/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kLookupMostInvocations = 256;
constexpr uint32_t kPlacesEach = 16;  // places of an invocation before a workgroup is added
constexpr uint32_t kLookupMostGroups = 32;

// The variants of each operation.
constexpr Variant<TextFromRing> kRingRows[] = {{"text_from_ring.portable"}};
constexpr Variant<LookupDrafts> kLookupRows[] = {{"lookup_drafts.portable"}};

uint64_t tokens_of(const TensorView& text) { return text.bytes / kWord - kTextTokens; }

Result<void> check_text(const TensorView& text, const char* what) {
  DP_CHECK(check_view(text, text_words(1) * kWord, what));
  if (tokens_of(text) <= kMostTextTokens) return {};
  return fail(ErrorKind::kInternal, "The %s has %llu tokens; at most %u are searched.", what,
              static_cast<unsigned long long>(tokens_of(text)), kMostTextTokens);
}

}  // namespace

std::span<const Variant<TextFromRing>> text_from_ring_variants() { return kRingRows; }
std::span<const Variant<LookupDrafts>> lookup_drafts_variants() { return kLookupRows; }

Result<void> record(Context& ctx, const TextFromRing& op) {
  DP_CHECK(check_one_sequence(ctx, "text_from_ring"));
  DP_CHECK(check_text(op.text, "text of text_from_ring"));
  DP_CHECK(check_view(op.ring, kTokenRing * kWord, "ring of text_from_ring"));
  DP_TRY(const auto row, select("text_from_ring", text_from_ring_variants(), op, "", ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), kLookupMostInvocations, kLookupMostInvocations);
  return dispatch(ctx, {.variant = row->name,
                        .entry = "step/text_from_ring",
                        .layout = wgsl::text_from_ring::kLayout,
                        .consts = {u32_const("WORKGROUP", workgroup), u32_const("TOKEN_RING", kTokenRing)},
                        .bindings = {ctx.state, op.text, op.ring},
                        .fixed_bytes = kLookupMostInvocations * kWord});
}

Result<void> record(Context& ctx, const LookupDrafts& op) {
  DP_CHECK(check_one_sequence(ctx, "lookup_drafts"));
  DP_CHECK(check_text(op.text, "text of lookup_drafts"));
  if (op.rows < 2 || op.rows > kMostDraftRows) {
    return fail(ErrorKind::kInternal, "lookup_drafts makes %u rows; allowed is 2 to %u.", op.rows,
                kMostDraftRows);
  }
  DP_TRY(const auto row,
         select("lookup_drafts", lookup_drafts_variants(), op, format_text("%u rows", op.rows), ctx));
  const uint64_t tokens = tokens_of(op.text);
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), tokens, kLookupMostInvocations);
  const uint64_t wanted = (tokens + uint64_t{workgroup} * kPlacesEach - 1) / (workgroup * kPlacesEach);
  const auto groups = static_cast<uint32_t>(std::min<uint64_t>(wanted, kLookupMostGroups));
  DP_CHECK(dispatch(ctx, {.variant = row->name,
                          .entry = "step/lookup_match",
                          .layout = wgsl::lookup_match::kLayout,
                          .consts = {u32_const("WORKGROUP", workgroup), u32_const("GROUPS", groups),
                                     u32_const("LEAST", kLeastMatch), u32_const("LONGEST", kLongestMatch)},
                          .bindings = {ctx.state, op.text},
                          .grid = {.x = groups},
                          .fixed_bytes = tokens * kWord}));
  return dispatch(ctx, {.variant = row->name,
                        .entry = "step/lookup_drafts",
                        .layout = wgsl::lookup_drafts::kLayout,
                        .consts = {u32_const("ROWS", op.rows), u32_const("VOCAB_SIZE", op.vocab_size),
                                   bool_const("FILLS", op.fills)},
                        .bindings = {ctx.state, op.text},
                        .fixed_bytes = 2 * op.rows * kWord});
}

}  // namespace doppler::kernels
