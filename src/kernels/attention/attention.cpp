// Checks attention and chooses its variant: one or two dispatches for a decode step or a few rows, one for a prefill
// chunk. Read next: variants.h (rows and sizes), recording.h.
#include "kernels/attention/attention.h"

#include <cmath>

#include "kernels/attention/recording.h"
#include "kernels/linear/linear.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMostHeadDim = 576;  // a latent of 512 and 64 that rotate (DeepSeek)

Result<void> check_shape(const Attention& op) {
  const CacheView& cache = op.cache;
  if (cache.n_kv_heads == 0 || op.n_heads == 0 || op.n_heads % cache.n_kv_heads != 0) {
    return fail(ErrorKind::kInvalidInput, "Query heads (%u) are not a multiple of kv heads (%u).", op.n_heads,
                cache.n_kv_heads);
  }
  if (cache.head_dim == 0 || cache.head_dim > kMostHeadDim) {
    return fail(ErrorKind::kUnsupported, "Head dimension (%u) is not between 1 and %u.", cache.head_dim,
                kMostHeadDim);
  }
  if (cache.format == CacheFormat::kQ8_0 && cache.head_dim % kCacheBlock != 0) {
    return fail(ErrorKind::kUnsupported,
                "Head dimension (%u) is not a multiple of the q8_0 cache's block (%u).", cache.head_dim,
                kCacheBlock);
  }
  if (cache.ctx_len == 0) return fail(ErrorKind::kInvalidInput, "A cache of 0 positions.");
  if (!(op.scale > 0) || !std::isfinite(op.scale) || !(op.softcap >= 0) || !std::isfinite(op.softcap)) {
    return fail(ErrorKind::kInvalidInput, "Scale (%g) is not positive or softcap (%g) negative.",
                static_cast<double>(op.scale), static_cast<double>(op.softcap));
  }
  return {};
}

Result<void> check_cache(const Context& ctx, const CacheView& cache) {
  const uint64_t limit = ctx.plan.caps().max_binding_bytes;
  if (cache.bytes() > limit) {
    const uint64_t fits = limit / (cache.bytes() / cache.positions());
    return fail(ErrorKind::kUnsupported,
                "The keys of one layer take %s at %llu positions; this device binds up to %s: a context of "
                "%llu fits.",
                format_bytes(cache.bytes()).c_str(), static_cast<unsigned long long>(cache.positions()),
                format_bytes(limit).c_str(), static_cast<unsigned long long>(fits));
  }
  DP_CHECK(check_view(cache.k, cache.bytes(), "k of attention"));
  return check_view(cache.v, cache.bytes(), "v of attention");
}

Result<void> check_ring(const Context& ctx, const Attention& op) {
  const uint32_t kept = op.cache.ring_len;
  if (kept == 0 || (op.window != 0 && ctx.tables.sequences == 0 && kept >= op.window - 1 + ctx.max_rows)) {
    return {};
  }
  return fail(ErrorKind::kInternal,
              "A ring of %u positions for a window of %u and %u rows; it is for plans of one sequence, and "
              "holds the window and the rows.",
              kept, op.window, ctx.max_rows);
}

Result<void> check_inputs(const Context& ctx, const Attention& op) {
  if (op.rope && op.rope->q_out != op.q)
    return fail(ErrorKind::kInternal, "q of attention is not what rope writes.");
  if (op.rope && op.rope->norms.valid())
    DP_CHECK(check_view(op.rope->norms, op.rope->norms_bytes(), "norms of attention"));
  DP_CHECK(check_view(op.q, row_floats(op) * sizeof(float) * ctx.max_rows, "q of attention"));
  if (op.spans.valid()) {
    DP_CHECK(check_view(op.spans, kSpanBytes * ctx.max_rows, "spans of attention"));
    if (op.sinks.valid())
      return fail(ErrorKind::kInternal, "Attention has spans and sinks, which share a binding.");
  }
  if (op.ahead != 0 && (op.single_rows != 0 || ctx.max_rows == 1)) {
    return fail(ErrorKind::kInternal, "Attention that sees ahead is of the rows of one text.");
  }
  if (op.sinks.valid()) DP_CHECK(check_view(op.sinks, op.n_heads * sizeof(float), "sinks of attention"));
  return {};
}

Result<void> check_rows(const Context& ctx, const Attention& op, const Rows& y) {
  const auto k = static_cast<uint32_t>(row_floats(op));
  if (y.f32.valid() || (!y.q8.valid() && !y.f16.valid())) {
    DP_CHECK(check_view(y.f32, row_floats(op) * sizeof(float) * ctx.max_rows, "y of attention"));
  }
  if (y.q8.valid()) {
    if (k % 32 != 0) {
      return fail(ErrorKind::kInternal, "Row length (%u) of attention's q8 output is not a multiple of 32.",
                  k);
    }
    DP_CHECK(check_view(y.q8, q8_bytes(ctx.max_rows, k), "q8 of attention"));
  }
  if (y.f16.valid()) DP_CHECK(check_view(y.f16, f16_bytes(ctx.max_rows, k), "f16 of attention"));
  return {};
}

std::string shape_text(const Attention& op) {
  const char* format = cache_format_name(op.cache.format);
  return format_text("%u heads on %u, head_dim %u, %s cache of %u%s", op.n_heads, op.cache.n_kv_heads,
                     op.cache.head_dim, format, visible_keys(op), op.ahead == 0 ? "" : ", bidirectional");
}

// y with f32 where the row cannot write another form without it.
Rows complete_rows(Context& ctx, const Attention& op, const AttentionChoice& choice, Rows y) {
  bool skips_f32 = false;
  if (choice.decode) {
    skips_f32 = writes_f16_alone(op, *choice.decode, y);
  } else if (!choice.singles) {
    const AttentionPrefillRow& row = *choice.prefill;
    skips_f32 = row.kernel == PrefillKernel::kEachRow ? writes_f16_alone(op, each_row(row), y)
                                                      : row.kernel == PrefillKernel::kMatrix && !y.q8.valid();
  }
  if (!y.f32.valid() && !skips_f32) {
    y.f32 = ctx.plan.scratch("attn_y", row_floats(op) * sizeof(float) * ctx.max_rows);
  }
  return y;
}

}  // namespace

namespace {

Result<Resolved<AttentionPrefillRow>> resolve_rows(const Context& ctx, const Attention& op, bool skinny) {
  DP_TRY(Resolved<AttentionPrefillRow> resolved,
         resolve(skinny ? "attention_skinny" : "attention_prefill",
                 skinny ? attention_skinny_variants() : attention_prefill_variants(), op, shape_text(op),
                 ctx.plan.caps(), ctx.policy));
  if (resolved.row->kernel == PrefillKernel::kEachRow) {
    tuned_row(ctx.policy, resolved.choice, each_row(*resolved.row));  // the choice names its constants
  }
  return resolved;
}

// True if rows of one sequence are attended each on its own: up to 16 rows, or 17 to 64 on a GPU without matrix units.
bool goes_row_by_row(const Context& ctx, const Attention& op) {
  if (op.ahead != 0 || op.spans.valid() || ctx.max_rows > kMaxNarrowRows) return false;
  if (ctx.max_rows <= kMaxSkinnyRows) return true;
  if (ctx.plan.caps().type == gpu::AdapterType::kCpu) return false;
  const auto tiles = resolve("attention_prefill", attention_prefill_variants(), op, shape_text(op),
                             ctx.plan.caps(), ctx.policy);
  return !tiles || tiles->row->kernel != PrefillKernel::kMatrix;
}

}  // namespace

Result<AttentionChoice> resolve_attention(const Context& ctx, const Attention& op) {
  DP_CHECK_WHILE(check_shape(op), "recording %s", ctx.op_label.c_str());
  DP_CHECK_WHILE(check_cache(ctx, op.cache), "recording %s", ctx.op_label.c_str());
  DP_CHECK_WHILE(check_ring(ctx, op), "recording %s", ctx.op_label.c_str());
  const gpu::Caps& caps = ctx.plan.caps();
  const bool has_pieces = single_rows(ctx, op).beside_pieces;
  if (ctx.max_rows > 1 || op.single_rows != 0) {
    const bool skinny = op.single_rows != 0 ? !has_pieces : goes_row_by_row(ctx, op);
    DP_TRY(Resolved<AttentionPrefillRow> resolved, resolve_rows(ctx, op, skinny));
    AttentionChoice choice{
        .choice = std::move(resolved.choice), .prefill = resolved.row, .rotates = resolved.row->rope};
    if (has_pieces) {
      DP_TRY(Resolved<AttentionPrefillRow> singles, resolve_rows(ctx, op, true));
      choice.singles = singles.row;
      choice.singles_choice = std::move(singles.choice);
    }
    return choice;
  }
  DP_TRY(Resolved<AttentionDecodeRow> resolved,
         resolve("attention_decode", attention_decode_variants(), op, shape_text(op), caps, ctx.policy));
  AttentionChoice choice{
      .choice = std::move(resolved.choice), .decode = resolved.row, .rotates = resolved.row->rope};
  const DecodeSizes sizes = decode_sizes(tuned_row(ctx.policy, choice.choice, *resolved.row), op, caps);
  if (resolved.row->reader_reduces && sizes.splits > 1) choice.leaves = partials_of(ctx, op, sizes);
  return choice;
}

namespace {

// Records rows of decoding slots, then those of pieces. Both leave f32, and the other forms are then made for all rows.
Result<void> record_singles_and_pieces(Context& ctx, const AttentionChoice& choice, Choice& noted,
                                       const Attention& op, const Rows& y) {
  if (op.rope) DP_CHECK(record(ctx, *op.rope));
  Attention rotated = op;
  rotated.rope = nullptr;
  const Rows f32{.f32 = y.f32};
  DP_CHECK(record_each_row(ctx, rotated, noted, each_row(*choice.singles), f32));
  const AttentionPrefillRow& row = *choice.prefill;
  DP_CHECK(row.kernel == PrefillKernel::kMatrix ? record_matrix(ctx, rotated, row, f32)
                                                : record_tiles(ctx, rotated, row, f32));
  return record_other_forms(ctx, op, y, false, false);
}

Result<void> record_rows(Context& ctx, const AttentionChoice& choice, Choice& noted, const Attention& op,
                         const Rows& y) {
  if (choice.decode) return record_each_row(ctx, op, noted, *choice.decode, y);
  if (choice.singles) return record_singles_and_pieces(ctx, choice, noted, op, y);
  const AttentionPrefillRow& row = *choice.prefill;
  if (row.kernel == PrefillKernel::kEachRow) return record_each_row(ctx, op, noted, each_row(row), y);
  if (op.rope) DP_CHECK(record(ctx, *op.rope));
  return row.kernel == PrefillKernel::kMatrix ? record_matrix(ctx, op, row, y)
                                              : record_tiles(ctx, op, row, y);
}

}  // namespace

Result<void> record(Context& ctx, const AttentionChoice& choice, const Attention& op,
                    const AttentionOutput& y) {
  DP_CHECK_WHILE(check_inputs(ctx, op), "recording %s", ctx.op_label.c_str());
  const auto* left = std::get_if<SplitPartials>(&y);
  if ((left != nullptr) != choice.leaves.has_value()) {
    return fail(ErrorKind::kInternal,
                "%s: the attention variant leaves %s to its reader, and the caller expects %s.",
                ctx.op_label.c_str(), choice.leaves ? "splits" : "nothing", left ? "splits" : "rows");
  }
  if (op.gate_column && !choice.rotates) {
    return fail(ErrorKind::kInternal, "%s: %s does not gate its result.", ctx.op_label.c_str(),
                choice.choice.variant.c_str());
  }
  note_choice(ctx, choice.choice);
  if (choice.singles_choice) note_choice(ctx, *choice.singles_choice);
  Choice noted = choice.singles_choice ? *choice.singles_choice : choice.choice;
  if (left) {
    DP_CHECK(check_view(left->partials, left->bytes(), "partials of attention"));
    return record_each_row(ctx, op, noted, *choice.decode, y);
  }
  const Rows& rows = std::get<Rows>(y);
  DP_CHECK_WHILE(check_rows(ctx, op, rows), "recording %s", ctx.op_label.c_str());
  return record_rows(ctx, choice, noted, op, complete_rows(ctx, op, choice, rows));
}

}  // namespace doppler::kernels
