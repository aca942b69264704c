// layers.h: what is refused, and the recording. Read next: stages.h, persistent_layers.wgsl.
#include "kernels/persistent/layers.h"

#include <algorithm>

#include "kernels/attention/variants.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/step_state.h"
#include "kernels/linear/product.h"
#include "kernels/persistent/persistent_layers.wgsl.h"
#include "kernels/persistent/ranges.h"
#include "kernels/persistent/stages.h"
#include "kernels/persistent/table.h"

namespace doppler::kernels {
namespace {

constexpr float kPersistentLog2E = 1.44269504f;
// Polls of one invocation; each takes most of a microsecond on a GPU: a fifth of a second.
constexpr uint32_t kSpinLimit = 1u << 18;
constexpr uint32_t kMostVectors = 8;  // of eight dimensions an invocation of attention holds
// Lavapipe ends the loops of an invocation after 65,535 iterations and atomic additions in all: so many are for the
// loops over weights, so many for waiting, and the rest for additions that find their word there.
constexpr uint64_t kMostIterationsOfCpu = 20000;
constexpr uint32_t kSpinLimitOfCpu = 40000;

constexpr uint32_t kLeastSubgroupOfJoined = 4;  // persistent_stream_joined

uint32_t keys_of(const PersistentLayers& op) { return visible_keys(attention_of(op)); }

uint64_t workgroup_bytes(const PersistentLayers& op, const PersistentParts& has,
                         const PersistentStages& stages, const PersistentHeads& attention) {
  const DecodeSizes& head = attention.sizes;
  const uint32_t d = op.layers.front().cache.padded_head_dim();
  const uint32_t parts = head.workgroup / head.subgroup;
  const uint64_t eight = op.layers.front().cache.format == CacheFormat::kF16 ? 16 : 32;
  const uint64_t x = uint64_t{stages.most_blocks} * (16 + 8);
  // Blocks made by subgroup operations take no room for their squares.
  const uint64_t values = (stages.subgroup >= kQ8Block ? 1ull : 2ull) * stages.most_values;
  const uint32_t norm_parts = stages.threads / stages.subgroup;
  const uint64_t stream = has.post_norms ? uint64_t{op.hidden_dim} + norm_parts : stages.own_rows;
  uint64_t floats = uint64_t{stages.partials} + stream + values + norm_parts + (head.heads + 2ull) * d +
                    uint64_t{parts} * (d + 2ull * head.heads) + 4;
  if (attention.is_long) floats += 2ull * head.splits + stages.threads;
  return x + 4 * floats + 2ull * d / 8 * eight;
}

// Words that a dispatch leaves carry its number in 8 bits; a step must not bring the same number again.
constexpr size_t kMostDispatches = 255;

uint32_t most_layers(std::span<const LayerRange> ranges) {
  return std::ranges::max(ranges, {}, &LayerRange::count).count;
}

// Iterations of the loop over units of weights, in a dispatch of so many layers.
uint64_t iterations(const PersistentLayers& op, const PersistentStages& stages, uint32_t layers) {
  uint64_t units = 0;
  for (const PersistentStage* stage : {&stages.qkv, &stages.out, &stages.gate, &stages.down}) {
    units += uint64_t{(stage->items + op.groups - 1) / op.groups} * stage->sums * stage->units_each;
  }
  return layers * units / 4;
}

std::string refuse_persistent(const PersistentLayers& op, const gpu::Caps& caps) {
  if (!op.unfit.empty()) return op.unfit;
  if (op.groups == 0) return "the probe found no workgroups that are co-resident";
  const auto shape = persistent_shape(op);
  if (!shape) return shape.error().sentence();
  const CacheView& cache = op.layers.front().cache;
  const uint32_t q = op.n_heads * cache.head_dim;
  for (const uint32_t columns : {op.hidden_dim, op.ffn_dim, q}) {
    if (columns % 32 != 0) return format_text("%u columns are not a multiple of 32", columns);
  }
  if (cache.head_dim % 16 != 0) return format_text("head_dim %u is not a multiple of 16", cache.head_dim);
  const PersistentHeads heads = persistent_heads(op, caps);
  if (heads.sizes.vectors > kMostVectors || heads.sizes.workgroup != persistent_threads(caps)) {
    return format_text("head_dim %u does not fit workgroups of %u invocations", cache.head_dim,
                       persistent_threads(caps));
  }
  const auto ranges = layer_ranges(op, caps);
  if (!ranges) return ranges.error().sentence();
  if (ranges->size() > kMostDispatches) {
    return format_text("its layers take %zu dispatches (up to %zu)", ranges->size(), kMostDispatches);
  }
  constexpr uint32_t kStorageBuffers = std::size(wgsl::persistent_layers::kLayout) - 1;
  if (caps.max_storage_buffers < kStorageBuffers) {
    return format_text("it binds %u storage buffers, this device allows %u", kStorageBuffers,
                       caps.max_storage_buffers);
  }
  const PersistentStages stages = persistent_stages(op, *shape, caps);
  if (shape->parts.post_norms && stages.subgroup < kLeastSubgroupOfJoined) {
    return format_text("norms after the branches need subgroups of %u, this device has some of %u",
                       kLeastSubgroupOfJoined, stages.subgroup);
  }
  if (caps.type == gpu::AdapterType::kCpu &&
      iterations(op, stages, most_layers(*ranges)) > kMostIterationsOfCpu) {
    return "a CPU's driver ends loops too early for a model of this size";
  }
  const uint64_t bytes = workgroup_bytes(op, shape->parts, stages, heads);
  if (bytes <= caps.max_workgroup_bytes) return "";
  return format_text("it needs %llu bytes of workgroup memory, this device has %u",
                     static_cast<unsigned long long>(bytes), caps.max_workgroup_bytes);
}

constexpr Variant<PersistentLayers> kPersistentRows[] = {
    {.name = "decode_layers.persistent",
     .lane = Lane::kPersistent,
     .needs = kNeedSubgroups | kNeedDp4a,
     .refuse = refuse_persistent},
    {.name = "decode_layers.chain"},
};

void add_attention_consts(const PersistentLayers& op, const DecodeSizes& head, bool has_sliding,
                          std::vector<gpu::WgslConst>& consts) {
  const CacheView& cache = op.layers.front().cache;
  for (const gpu::WgslConst& value :
       {u32_const("HEAD_DIM", cache.head_dim),
        u32_const("D8", cache.padded_head_dim() / 8),
        u32_const("N_HEADS", op.n_heads),
        u32_const("N_KV_HEADS", cache.n_kv_heads),
        u32_const("GROUP", op.n_heads / cache.n_kv_heads),
        u32_const("CTX_LEN", cache.ctx_len),
        u32_const("WINDOW", op.window == 0 ? UINT32_MAX : op.window),
        f32_const("Q_SCALE", op.softcap > 0 ? op.scale / op.softcap : op.scale * kPersistentLog2E),
        f32_const("SOFTCAP", op.softcap),
        bool_const("HAS_SOFTCAP", op.softcap > 0),
        u32_const("HEADS", head.heads),
        u32_const("HEAD_CHUNKS", head.head_chunks),
        u32_const("SPLITS", head.splits),
        u32_const("KEYS_PER_SPLIT", head.keys_per_split),
        u32_const("WORKGROUP", head.workgroup),
        u32_const("VECTORS", head.vectors),
        u32_const("INVOCATIONS_PER_KEY", head.invocations_per_key),
        u32_const("KEYS", head.keys),
        u32_const("ROTARY_DIM", op.rotary_dim),
        bool_const("INTERLEAVED", op.interleaved),
        f32_const("ATTENTION_FACTOR", has_sliding ? 1 : op.attention_factor)}) {
    consts.push_back(value);
  }
}

void add_costs(const PersistentLayers& op, const LayerRange& range, Launch& launch) {
  const uint64_t keys = keys_of(op);
  for (const PersistentLayer& layer : std::span(op.layers).subspan(range.first, range.count)) {
    std::vector<const Weight*> weights = layer.qkv;
    weights.insert(weights.end(), {layer.out, layer.gate_up, layer.down});
    for (const Weight* weight : weights) {
      launch.fixed_bytes += piece_bytes(*weight, weight->pieces[0]);
      launch.operations += uint64_t{2} * weight->n * weight->k;
    }
    launch.bytes += 2 * layer.cache.bytes() / layer.cache.ctx_len * keys;
    launch.operations += uint64_t{4} * op.n_heads * layer.cache.head_dim * keys;
  }
}

// The uniform binding: as long for all dispatches, so that they share a pipeline.
Result<void> dispatch_range(Context& ctx, const PersistentLayers& op, const LayerRange& range,
                            std::span<const uint8_t> table, Launch launch) {
  launch.params = table;
  launch.bindings = {ctx.state,
                     range.weights.view,
                     range.weights.view,
                     range.vectors.view,
                     op.rotary_dim > 0 ? range.angles.view : range.vectors.view,
                     range.cache.view,
                     op.exchange,
                     op.row,
                     op.next.buffer};
  add_costs(op, range, launch);
  return dispatch(ctx, launch);
}

Result<void> check_optional(const PersistentLayers& op, const PersistentLayer& layer) {
  struct Vector {
    TensorView view;
    uint64_t floats;
    const char* name;
  };
  const uint64_t hidden = op.hidden_dim;
  std::vector<Vector> vectors = {
      {layer.out_bias, hidden, "bias of the output of decode_layers"},
      {layer.gate_up_bias, 2ull * op.ffn_dim, "bias of gate and up of decode_layers"},
      {layer.down_bias, hidden, "bias of down of decode_layers"},
      {layer.qk_norms, 2ull * layer.cache.head_dim, "norms of q and k of decode_layers"},
      {layer.post_attention_norm, hidden, "norm after attention of decode_layers"},
      {layer.post_ffn_norm, hidden, "norm after the feed-forward of decode_layers"}};
  for (size_t i = 0; i < layer.qkv_bias.size(); ++i) {
    vectors.push_back({layer.qkv_bias[i], layer.qkv[i]->n, "bias of q, k and v of decode_layers"});
    DP_CHECK(check_view(layer.qkv_bias[i], 4, vectors.back().name));
  }
  for (const Vector& vector : vectors) {
    if (vector.view.valid()) DP_CHECK(check_view(vector.view, vector.floats * 4, vector.name));
  }
  return {};
}

Result<void> check(const Context& ctx, const PersistentLayers& op) {
  const uint64_t row = uint64_t{op.hidden_dim} * 4;
  DP_CHECK(check_view(ctx.state, sizeof(StepState), "step state"));
  DP_CHECK(check_view(op.row, row, "row of decode_layers"));
  DP_CHECK(check_view(op.exchange, exchange_bytes(op, ctx.plan.caps()), "exchange of decode_layers"));
  DP_CHECK(check_view(op.next.buffer, DeferredNorm::bytes(op.hidden_dim, true), "next of decode_layers"));
  for (const PersistentLayer& layer : op.layers) {
    const TensorView table = layer.is_sliding ? op.sliding.table : op.table;
    if (op.rotary_dim > 0) DP_CHECK(check_view(table, op.rotary_dim * 4ull, "table of decode_layers"));
    DP_CHECK(check_view(layer.ffn_norm, row, "norm of decode_layers"));
    DP_CHECK(check_view(layer.next_norm, row, "norm of decode_layers"));
    DP_CHECK(check_view(layer.cache.k, layer.cache.bytes(), "keys of decode_layers"));
    DP_CHECK(check_view(layer.cache.v, layer.cache.bytes(), "values of decode_layers"));
    DP_CHECK(check_optional(op, layer));
  }
  return {};
}

}  // namespace

std::span<const Variant<PersistentLayers>> decode_layers_variants() { return kPersistentRows; }

Result<std::string> refuse_persistent_layers(Context& ctx, const PersistentLayers& op) {
  const std::string shape =
      format_text("%zu layers of %u, up to %u keys", op.layers.size(), op.hidden_dim, keys_of(op));
  DP_TRY(const auto resolved,
         (resolve<Variant<PersistentLayers>, PersistentLayers>("decode_layers", decode_layers_variants(), op,
                                                               shape, ctx.plan.caps(), ctx.policy)));
  note_choice(ctx, resolved.choice);
  if (resolved.row == &kPersistentRows[0]) return std::string();
  return resolved.choice.refused.empty() ? std::string("the chain was asked for")
                                         : resolved.choice.refused.front().reason;
}

Result<void> record(Context& ctx, const PersistentLayers& op) {
  DP_CHECK(check(ctx, op));
  DP_TRY(const PersistentShape shape, persistent_shape(op));
  const gpu::Caps& caps = ctx.plan.caps();
  const bool is_cpu = caps.type == gpu::AdapterType::kCpu;
  const PersistentStages stages = persistent_stages(op, shape, caps);
  const CacheView& cache = op.layers.front().cache;
  DP_TRY(const std::vector<LayerRange> ranges, layer_ranges(op, caps));
  Launch launch{.variant = kPersistentRows[0].name,
                .entry = "persistent/persistent_layers",
                .layout = wgsl::persistent_layers::kLayout};
  launch.subgroups = true;
  launch.substitutions = {{"linear/weights/format", weight_fragment(shape.format, true)},
                          {"other_linear/weights/format", weight_fragment(shape.other, true)},
                          {"attention/attention_quad_y", "persistent/persistent_attention_output"}};
  const PersistentHeads heads = persistent_heads(op, caps);
  if (heads.is_long) {
    launch.substitutions.back().second = "persistent/persistent_split_output";
    launch.substitutions.emplace_back("persistent/persistent_attention",
                                      "persistent/persistent_attention_splits");
  }
  if (stages.subgroup >= kQ8Block) {
    launch.substitutions.emplace_back("persistent/persistent_block", "persistent/persistent_block_subgroup");
  }
  if (shape.parts.post_norms) {
    launch.substitutions.emplace_back("persistent/persistent_stream", "persistent/persistent_stream_joined");
  }
  if (shape.parts.qk_norms) {
    launch.substitutions.emplace_back("persistent/persistent_head_plain", "persistent/persistent_head_norms");
  }
  if (shape.has_sliding) {
    launch.substitutions.emplace_back("persistent/persistent_alike", "persistent/persistent_sliding");
    launch.substitutions.emplace_back("attention/attention_decode_range", "persistent/persistent_range");
  }
  if (cache.format == CacheFormat::kF32) {
    launch.substitutions.emplace_back("attention/attention_cache_f16", "attention/attention_cache_f32");
    launch.substitutions.emplace_back("attention/attention_cache_f16_store",
                                      "attention/attention_cache_f32_store");
  }
  const ExchangeLayout exchange = exchange_layout(op, caps);
  launch.consts = stage_consts(stages);
  for (const gpu::WgslConst& value :
       {u32_const("GROUPS", op.groups),
        u32_const("MOST_LAYERS", table_rows(ranges)),
        u32_const("HIDDEN", op.hidden_dim),
        u32_const("FFN", op.ffn_dim),
        f32_const("NORM_EPS", op.norm_eps),
        u32_const("ACTIVATE", static_cast<uint32_t>(op.activate)),
        bool_const("HAS_OTHER", shape.other != shape.format),
        bool_const("HAS_QKV_BIAS", shape.parts.qkv_bias),
        bool_const("HAS_OUT_BIAS", shape.parts.out_bias),
        bool_const("HAS_GATE_BIAS", shape.parts.gate_up_bias),
        bool_const("HAS_DOWN_BIAS", shape.parts.down_bias),
        u32_const("SPIN_LIMIT", is_cpu ? kSpinLimitOfCpu : kSpinLimit),
        bool_const("IS_LAVAPIPE", is_cpu),
        u32_const("EXCHANGE_LAYER", exchange.words),
        u32_const("Y_AT", exchange.y),
        u32_const("OUT_AT", exchange.out),
        u32_const("GATE_AT", exchange.gate),
        u32_const("DOWN_AT", exchange.down),
        u32_const("PARTS_AT", exchange.parts),
        u32_const("COUNTERS_AT", exchange.counters),
        u32_const("Q8_PLANE1", q8_plane1_offset(1, op.hidden_dim) / 4),
        u32_const("H_SUMS", DeferredNorm::sums_offset(op.hidden_dim, true) / 4)}) {
    launch.consts.push_back(value);
  }
  add_attention_consts(op, heads.sizes, shape.has_sliding, launch.consts);
  launch.grid.x = op.groups;
  launch.keys = keys_of(op);
  for (const LayerRange& range : ranges) {
    DP_CHECK(dispatch_range(ctx, op, range,
                            layer_table(op, shape, stages, exchange, range, table_rows(ranges)), launch));
  }
  return {};
}

}  // namespace doppler::kernels
