#include "kernels/persistent/stages.h"

#include <algorithm>
#include <bit>

#include "kernels/common/dispatch.h"
#include "kernels/persistent/measured.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kPersistentStagesUnit = 32;  // columns
constexpr uint32_t kThreadsOfCpu = 64;  // a CPU device runs the invocations of a workgroup one after another
constexpr uint32_t kMostPartials = 2048;  // words of workgroup memory for the partial sums of a round
// Attention. Keys at once of a worker where a workgroup has one head: more (kMostKeysAtOnce) where workers are few.
constexpr uint32_t kKeysOfRound = 256;  // of all workers
constexpr uint32_t kLeastKeysAtOnce = 4;
constexpr uint32_t kLeastSplits = 2, kPersistentStagesMostSplits = 32;
constexpr uint32_t kBlockWords = 8, kBlockWordsWithoutSquares = 7;  // persistent_exchange.wgsl

uint32_t divided_up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

struct Dealing {
  const PersistentLayers& op;
  uint32_t threads, subgroup;

  uint32_t units_each(uint32_t rows, uint32_t units) const { return divided_up(units, threads / rows); }
  uint32_t sums_of(uint32_t rows) const { return std::min(threads / rows, threads / subgroup) * rows; }

  PersistentStage stage(uint32_t rows, uint32_t outputs, uint32_t k, uint32_t sums) const {
    PersistentStage s{
        .rows = rows, .items = outputs / rows, .units = k / kPersistentStagesUnit, .sums = sums};
    const uint32_t most = std::min(threads / rows, kMostPartials / (sums_of(rows) * sums));
    s.each = std::clamp(divided_up(s.items, op.groups), 1u, std::max(most, 1u));
    s.units_each = units_each(rows, s.units);
    return s;
  }

  // Rows an item should have: `units` are those of the products that share it. Larger items win ties, since their loads
  // are wider.
  uint32_t best_rows(std::initializer_list<uint32_t> choices, std::initializer_list<uint32_t> outputs,
                     std::initializer_list<uint32_t> units) const {
    uint32_t best = 0, least = UINT32_MAX;
    for (const uint32_t rows : choices) {
      uint32_t items = 0, cost = 0;
      bool fits = rows <= threads;
      for (const uint32_t count : outputs) {
        fits = fits && count % rows == 0;
        items += count / rows;
      }
      for (const uint32_t count : units) cost += divided_up(items, op.groups) * units_each(rows, count);
      if (!fits || cost > least) continue;
      best = rows;
      least = cost;
    }
    return best;
  }
};

}  // namespace

uint32_t persistent_threads(const gpu::Caps& caps) {
  const uint32_t most = caps.type == gpu::AdapterType::kCpu ? kThreadsOfCpu : kMostThreads.value;
  return std::bit_floor(std::max(std::min({most, caps.max_invocations, caps.max_workgroup_size_x}), 32u));
}

PersistentStages persistent_stages(const PersistentLayers& op, const PersistentShape& shape,
                                   const gpu::Caps& caps) {
  const CacheView& cache = op.layers.front().cache;
  const uint32_t q = op.n_heads * cache.head_dim;
  PersistentStages s;
  s.threads = persistent_threads(caps);
  s.subgroup = std::bit_floor(std::clamp(caps.subgroup_min, 1u, s.threads));
  const Dealing deal{op, s.threads, s.subgroup};
  const uint32_t hidden_units = op.hidden_dim / kPersistentStagesUnit;
  const uint32_t second_rows = shape.has_two_parts ? shape.qkv_rows - shape.first_rows : 0;
  const uint32_t first_rows = shape.has_two_parts ? shape.first_rows : shape.qkv_rows;
  const uint32_t qkv = deal.best_rows({8, 16, 32}, {first_rows, second_rows}, {hidden_units});
  s.qkv = deal.stage(qkv, shape.qkv_rows, op.hidden_dim, 1);
  // Rows whose norm comes later need no whole blocks.
  const std::initializer_list<uint32_t> blocks = {16, 32}, any = {8, 16, 32};
  const uint32_t out = deal.best_rows(shape.parts.post_norms ? any : blocks, {op.hidden_dim},
                                      {q / kPersistentStagesUnit, op.ffn_dim / kPersistentStagesUnit});
  s.out = deal.stage(out, op.hidden_dim, q, 1);
  s.down = deal.stage(out, op.hidden_dim, op.ffn_dim, 1);
  const uint32_t gate = deal.best_rows({16, 32}, {op.ffn_dim}, {hidden_units, hidden_units});
  s.gate = deal.stage(gate, op.ffn_dim, op.hidden_dim, 2);

  const uint32_t out_rounds = divided_up(s.out.items, op.groups * s.out.each);
  s.own_rows = out_rounds * s.out.each * s.out.rows;
  s.most_values = std::max({s.out.each * s.out.rows, s.gate.each * s.gate.rows, cache.padded_head_dim()});
  s.most_blocks = std::max({op.hidden_dim, q, op.ffn_dim}) / kQ8Block;
  const auto partials = [&](const PersistentStage& stage) {
    return stage.each * stage.sums * deal.sums_of(stage.rows);
  };
  s.partials = std::max({partials(s.qkv), partials(s.out), partials(s.gate)});
  if (shape.parts.qk_norms) {  // squares of pairs lie there during attention
    s.partials = std::max(s.partials, (persistent_heads(op, caps).sizes.heads + 1) * cache.head_dim / 2);
  }
  return s;
}

std::vector<gpu::WgslConst> stage_consts(const PersistentStages& s) {
  return {u32_const("THREADS", s.threads),
          u32_const("SUBGROUP", s.subgroup),
          u32_const("QKV_ROWS", s.qkv.rows),
          u32_const("QKV_ITEMS", s.qkv.items),
          u32_const("QKV_EACH", s.qkv.each),
          u32_const("QKV_UNITS_EACH", s.qkv.units_each),
          u32_const("OUT_ROWS", s.out.rows),
          u32_const("OUT_ITEMS", s.out.items),
          u32_const("OUT_EACH", s.out.each),
          u32_const("OUT_UNITS_EACH", s.out.units_each),
          u32_const("DOWN_UNITS_EACH", s.down.units_each),
          u32_const("GATE_ROWS", s.gate.rows),
          u32_const("GATE_ITEMS", s.gate.items),
          u32_const("GATE_EACH", s.gate.each),
          u32_const("GATE_UNITS_EACH", s.gate.units_each),
          u32_const("OWN_ROWS", s.own_rows),
          u32_const("MOST_VALUES", s.most_values),
          u32_const("MOST_BLOCKS", s.most_blocks),
          u32_const("PARTIALS", s.partials)};
}

// The longest that a layer has; 0: some sees all keys.
static uint32_t longest_window(const PersistentLayers& op) {
  uint32_t longest = 0;
  for (const PersistentLayer& layer : op.layers) {
    const uint32_t window = layer.is_sliding ? op.sliding.window : op.window;
    if (window == 0) return 0;
    longest = std::max(longest, window);
  }
  return longest;
}

Attention attention_of(const PersistentLayers& op) {
  Attention attention{.q = {}, .cache = op.layers.front().cache, .n_heads = op.n_heads};
  attention.window = longest_window(op);
  attention.max_keys = op.max_keys;
  return attention;
}

PersistentHeads persistent_heads(const PersistentLayers& op, const gpu::Caps& caps) {
  const Attention attention = attention_of(op);
  PersistentHeads heads{.is_long = visible_keys(attention) > kShortKeys};
  AttentionDecodeRow row;
  row.kernel = DecodeKernel::kSubgroup;
  row.workgroup = persistent_threads(caps);
  row.keys_at_once = kLeastKeysAtOnce;
  const uint32_t group = op.n_heads / attention.cache.n_kv_heads;
  row.heads = !heads.is_long ? 1 : group <= kMostHeadsOfSplit ? group : kHeadsOfChunk;
  heads.sizes = decode_sizes(row, attention, caps);
  if (!heads.is_long) {
    // On a CPU device more are only more code.
    if (caps.type == gpu::AdapterType::kCpu) return heads;
    row.keys_at_once = std::clamp(kKeysOfRound / (row.workgroup / heads.sizes.invocations_per_key),
                                  kLeastKeysAtOnce, kMostKeysAtOnce.value);
    heads.sizes = decode_sizes(row, attention, caps);
    return heads;
  }
  const uint32_t head_groups = attention.cache.n_kv_heads * heads.sizes.head_chunks;
  heads.sizes.splits = std::clamp(op.groups / head_groups, kLeastSplits, kPersistentStagesMostSplits);
  heads.sizes.keys_per_split = kKeysPerSplit;
  return heads;
}

namespace {

// For layers with norms after their branches, whose rows are sent before the norm, or without.
ExchangeLayout places_of(const PersistentLayers& op, const PersistentHeads& heads, bool has_post_norms) {
  const CacheView& cache = op.layers.front().cache;
  const uint32_t hidden = has_post_norms ? op.hidden_dim : op.hidden_dim / kQ8Block * kBlockWords;
  ExchangeLayout at;
  at.y = (op.n_heads + 2 * cache.n_kv_heads) * cache.head_dim;
  at.out = at.y + op.n_heads * cache.head_dim / kQ8Block * kBlockWordsWithoutSquares;
  at.gate = at.out + hidden;
  at.down = at.gate + op.ffn_dim / kQ8Block * kBlockWordsWithoutSquares;
  at.parts = at.down + hidden;
  at.words = at.parts;
  if (heads.is_long) at.words += heads.sizes.splits * op.n_heads * (cache.head_dim + 2);
  return at;
}

// With contexts as long as they may be, or as the short dispatch has them.
PersistentLayers with_keys(PersistentLayers op, uint32_t max_keys) {
  op.max_keys = max_keys;
  return op;
}

ExchangeLayout layout_of(const PersistentLayers& op, bool has_post_norms, const gpu::Caps& caps) {
  constexpr uint32_t kLine = 64;  // words
  const PersistentHeads heads = persistent_heads(op, caps);
  ExchangeLayout at = places_of(op, heads, has_post_norms);
  at.counters = kExchangeCounters + (heads.is_long ? op.groups : 0);
  at.first = (kExchangeCounters + 2 * op.groups + kLine - 1) / kLine * kLine;
  if (heads.is_long) {
    const PersistentLayers shorter = with_keys(op, kShortKeys);
    at.first += places_of(shorter, persistent_heads(shorter, caps), has_post_norms).words *
                static_cast<uint32_t>(op.layers.size());
  }
  return at;
}

}  // namespace

ExchangeLayout exchange_layout(const PersistentLayers& op, const gpu::Caps& caps) {
  return layout_of(op, op.layers.front().post_attention_norm.valid(), caps);
}

uint64_t exchange_bytes(const PersistentLayers& op, const gpu::Caps& caps) {
  // It is longest with norms after the branches.
  const ExchangeLayout last = layout_of(with_keys(op, 0), true, caps);
  return 4 * (last.first + uint64_t{last.words} * op.layers.size());
}

}  // namespace doppler::kernels
