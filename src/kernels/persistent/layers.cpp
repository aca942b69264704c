// layers.h: what is refused, and the recording. Read next: stages.h, persistent_layers.wgsl.
#include "kernels/persistent/layers.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/attention/variants.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/step_state.h"
#include "kernels/linear/product.h"
#include "kernels/persistent/persistent_layers.wgsl.h"
#include "kernels/persistent/ranges.h"
#include "kernels/persistent/stages.h"

namespace doppler::kernels {
namespace {

constexpr float kLog2E = 1.44269504f;
// Polls of one invocation, of which each takes most of a microsecond on a GPU: a fifth of a second.
constexpr uint32_t kPatience = 1u << 18;
constexpr uint32_t kMostVectors = 8;  // of eight dimensions a lane of attention holds
// Lavapipe ends the loops of an invocation after 65,535 iterations and atomic additions in all: so many are for the loops
// over weights, so many for waiting, and the rest for additions that find their word there.
constexpr uint64_t kMostIterationsOfCpu = 20000;
constexpr uint32_t kPatienceOfCpu = 40000;

uint32_t keys_of(const PersistentLayers& op) { return visible_keys(attention_of(op)); }

uint64_t workgroup_bytes(const PersistentLayers& op, const PersistentStages& stages,
                         const PersistentHeads& attention) {
  const DecodeSizes& head = attention.sizes;
  const uint32_t d = op.layers.front().cache.padded_head_dim();
  const uint32_t parts = head.workgroup / head.subgroup;
  const uint64_t eight = op.layers.front().cache.format == CacheFormat::kF16 ? 16 : 32;
  const uint64_t x = uint64_t{stages.most_blocks} * (16 + 8);
  uint64_t floats = uint64_t{stages.partials} + stages.own_rows + 2ull * stages.most_values +
                    stages.threads / stages.subgroup + (head.heads + 2ull) * d +
                    uint64_t{parts} * (d + 2ull * head.heads) + 4;
  if (attention.is_long) floats += 2ull * head.splits + stages.threads;
  return x + 4 * floats + 2ull * d / 8 * eight;
}

// What persistent_layers.wgsl reads of its dispatch, of a stage, and of a layer, in their order.
struct DispatchWords {
  uint32_t layers = 0, first_norm = 0, exchange = 0, one = 1;
};
struct StageWords {
  uint32_t first[2] = {}, other[2] = {};
  uint32_t split = 0, gain = 0, unused[2] = {};
};
struct LayerWords {
  StageWords qkv, out, gate, down;
  uint32_t keys = 0, values = 0, unused[2] = {};
};
static_assert(sizeof(DispatchWords) == 16 && sizeof(LayerWords) == 9 * 16);
constexpr uint32_t kUniformBytes = 65536;  // WebGPU's limit of a uniform binding
static_assert(sizeof(DispatchWords) + kMostLayersOfDispatch * sizeof(LayerWords) <= kUniformBytes);
// Words that a dispatch leaves carry its number in 8 bits; a step must not bring the same number again.
constexpr size_t kMostDispatches = 255;

uint32_t most_layers(std::span<const LayerRange> ranges) {
  return std::ranges::max(ranges, {}, &LayerRange::count).count;
}

// Of the uniform table, for layers: in steps, so that more dispatches share a pipeline.
uint32_t table_rows(std::span<const LayerRange> ranges) {
  constexpr uint32_t kStep = 16;
  return (most_layers(ranges) + kStep - 1) / kStep * kStep;
}

// Of the loop over units of weights, in a dispatch of so many layers.
uint64_t iterations(const PersistentLayers& op, const PersistentStages& stages, uint32_t layers) {
  uint64_t units = 0;
  for (const PersistentStage* stage : {&stages.qkv, &stages.out, &stages.gate, &stages.down}) {
    units += uint64_t{(stage->items + op.groups - 1) / op.groups} * stage->sums * stage->units_each;
  }
  return layers * units / 4;
}

std::string refuse_persistent(const PersistentLayers& op, const gpu::Caps& caps) {
  if (!op.unfit.empty()) return op.unfit;
  if (op.groups == 0) return "the probe found no workgroups that run together";
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
  if (caps.type == gpu::AdapterType::kCpu &&
      iterations(op, stages, most_layers(*ranges)) > kMostIterationsOfCpu) {
    return "a CPU's driver ends loops too early for a model of this size";
  }
  const uint64_t bytes = workgroup_bytes(op, stages, heads);
  if (bytes <= caps.max_workgroup_bytes) return "";
  return format_text("it needs %llu bytes of workgroup memory, this device has %u",
                     static_cast<unsigned long long>(bytes), caps.max_workgroup_bytes);
}

constexpr Variant<PersistentLayers> kRows[] = {
    {.name = "decode_layers.persistent",
     .lane = Lane::kPersistent,
     .needs = kNeedSubgroups | kNeedDp4a,
     .refuse = refuse_persistent},
    {.name = "decode_layers.chain"},
};

void put_place(const BufferRange& range, const Weight& weight, uint32_t (&place)[2]) {
  const WeightLayout layout = weight_layout(weight.format, weight.n, weight.k);
  const TensorView view = weight.pieces[0].buffer;
  place[0] = range.place(view, 16);
  place[1] = range.place(view.sub(layout.plane1_offset, 0), 4);
}

// A stage of `first`, or from item `split` on of `second`, where that has the other format.
StageWords stage_words(const BufferRange& weights, const Weight& first, const Weight& second,
                       uint32_t split) {
  StageWords words{.split = split};
  put_place(weights, first, words.first);
  put_place(weights, second, words.other);
  return words;
}

std::vector<LayerWords> layer_words(const PersistentLayers& op, const PersistentShape& shape,
                                    const PersistentStages& stages, const LayerRange& range) {
  std::vector<LayerWords> table;
  for (const PersistentLayer& layer : std::span(op.layers).subspan(range.first, range.count)) {
    const auto words = [&](const PersistentStage& stage, const Weight& first, const Weight& second,
                           uint32_t split_row) {
      const bool is_split = second.format != shape.format;
      return stage_words(range.weights, first, second, is_split ? split_row / stage.rows : stage.items);
    };
    LayerWords one{.qkv = words(stages.qkv, *layer.qkv.front(), *layer.qkv.back(), layer.qkv.front()->n),
                   .out = words(stages.out, *layer.out, *layer.out, 0),
                   .gate = words(stages.gate, *layer.gate_up, *layer.gate_up, 0),
                   .down = words(stages.down, *layer.down, *layer.down, 0)};
    one.out.gain = range.vectors.place(layer.ffn_norm, 4);
    one.down.gain = range.vectors.place(layer.next_norm, 4);
    const uint32_t eight = layer.cache.format == CacheFormat::kF16 ? 16 : 32;
    one.keys = range.cache.place(layer.cache.k, eight);
    one.values = range.cache.place(layer.cache.v, eight);
    table.push_back(one);
  }
  return table;
}

void add_attention_consts(const PersistentLayers& op, const DecodeSizes& head,
                          std::vector<gpu::WgslConst>& consts) {
  const CacheView& cache = op.layers.front().cache;
  for (const gpu::WgslConst& value : {u32_const("HEAD_DIM", cache.head_dim),
                                      u32_const("D8", cache.padded_head_dim() / 8),
                                      u32_const("N_HEADS", op.n_heads),
                                      u32_const("N_KV_HEADS", cache.n_kv_heads),
                                      u32_const("GROUP", op.n_heads / cache.n_kv_heads),
                                      u32_const("CTX_LEN", cache.ctx_len),
                                      u32_const("WINDOW", op.window == 0 ? UINT32_MAX : op.window),
                                      f32_const("Q_SCALE", op.scale * kLog2E),
                                      f32_const("SOFTCAP", 0),
                                      bool_const("HAS_SOFTCAP", false),
                                      u32_const("HEADS", head.heads),
                                      u32_const("HEAD_CHUNKS", head.head_chunks),
                                      u32_const("SPLITS", head.splits),
                                      u32_const("KEYS_PER_SPLIT", head.keys_per_split),
                                      u32_const("WORKGROUP", head.workgroup),
                                      u32_const("VECTORS", head.vectors),
                                      u32_const("LANES", head.lanes),
                                      u32_const("KEYS", head.keys),
                                      u32_const("ROTARY_DIM", op.rotary_dim),
                                      bool_const("INTERLEAVED", op.interleaved),
                                      f32_const("ATTENTION_FACTOR", op.attention_factor)}) {
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
std::vector<uint8_t> table_of(const PersistentLayers& op, const PersistentShape& shape,
                              const PersistentStages& stages, const ExchangeLayout& exchange,
                              const LayerRange& range, uint32_t rows) {
  const DispatchWords head{.layers = range.count,
                           .first_norm = range.vectors.place(range.first_norm, 4),
                           .exchange = exchange.first + range.first * exchange.words};
  const std::vector<LayerWords> layers = layer_words(op, shape, stages, range);
  std::vector<uint8_t> table(sizeof(DispatchWords) + rows * sizeof(LayerWords));
  std::memcpy(table.data(), &head, sizeof(head));
  std::memcpy(table.data() + sizeof(head), layers.data(), layers.size() * sizeof(LayerWords));
  return table;
}

Result<void> dispatch_range(Context& ctx, const PersistentLayers& op, const LayerRange& range,
                            std::span<const uint8_t> table, Launch launch) {
  launch.params = table;
  launch.bindings = {ctx.state,
                     range.weights.view,
                     range.weights.view,
                     range.vectors.view,
                     op.rotary_dim > 0 ? op.table : range.vectors.view,
                     range.cache.view,
                     op.exchange,
                     op.row,
                     op.next.buffer};
  add_costs(op, range, launch);
  return dispatch(ctx, launch);
}

Result<void> check(const Context& ctx, const PersistentLayers& op) {
  const uint64_t row = uint64_t{op.hidden_dim} * 4;
  DP_CHECK(check_view(ctx.state, sizeof(StepState), "step state"));
  DP_CHECK(check_view(op.row, row, "row of decode_layers"));
  DP_CHECK(check_view(op.exchange, exchange_bytes(op, ctx.plan.caps()), "exchange of decode_layers"));
  DP_CHECK(check_view(op.next.buffer, BegunNorm::bytes(op.hidden_dim, true), "next of decode_layers"));
  if (op.rotary_dim > 0) DP_CHECK(check_view(op.table, op.rotary_dim * 4ull, "table of decode_layers"));
  for (const PersistentLayer& layer : op.layers) {
    DP_CHECK(check_view(layer.ffn_norm, row, "norm of decode_layers"));
    DP_CHECK(check_view(layer.next_norm, row, "norm of decode_layers"));
    DP_CHECK(check_view(layer.cache.k, layer.cache.bytes(), "keys of decode_layers"));
    DP_CHECK(check_view(layer.cache.v, layer.cache.bytes(), "values of decode_layers"));
  }
  return {};
}

}  // namespace

std::span<const Variant<PersistentLayers>> decode_layers_variants() { return kRows; }

Result<bool> chooses_persistent(Context& ctx, const PersistentLayers& op) {
  DP_TRY(const Variant<PersistentLayers>* row,
         select("decode_layers", decode_layers_variants(), op,
                format_text("%zu layers of %u, up to %u keys", op.layers.size(), op.hidden_dim, keys_of(op)),
                ctx));
  return row == &kRows[0];
}

Result<void> record(Context& ctx, const PersistentLayers& op) {
  DP_CHECK(check(ctx, op));
  DP_TRY(const PersistentShape shape, persistent_shape(op));
  const gpu::Caps& caps = ctx.plan.caps();
  const bool is_cpu = caps.type == gpu::AdapterType::kCpu;
  const PersistentStages stages = persistent_stages(op, shape, caps);
  const CacheView& cache = op.layers.front().cache;
  DP_TRY(const std::vector<LayerRange> ranges, layer_ranges(op, caps));
  Launch launch{.variant = kRows[0].name,
                .entry = "persistent/persistent_layers",
                .layout = wgsl::persistent_layers::kLayout};
  launch.subgroups = true;
  launch.substitutions = {{"weights/format", weight_fragment(shape.format, true)},
                          {"other_weights/format", weight_fragment(shape.other, true)},
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
  if (cache.format == CacheFormat::kF32) {
    launch.substitutions.emplace_back("attention/attention_cache_f16", "attention/attention_cache_f32");
    launch.substitutions.emplace_back("attention/attention_cache_f16_store",
                                      "attention/attention_cache_f32_store");
  }
  const ExchangeLayout exchange = exchange_layout(op, caps);
  launch.consts = stage_consts(stages);
  for (const gpu::WgslConst& value :
       {u32_const("GROUPS", op.groups), u32_const("MOST_LAYERS", table_rows(ranges)),
        u32_const("HIDDEN", op.hidden_dim), u32_const("FFN", op.ffn_dim), f32_const("NORM_EPS", op.norm_eps),
        u32_const("ACTIVATE", static_cast<uint32_t>(op.activate)),
        bool_const("HAS_OTHER", shape.other != shape.format),
        u32_const("PATIENCE", is_cpu ? kPatienceOfCpu : kPatience), bool_const("IS_LAVAPIPE", is_cpu),
        u32_const("EXCHANGE_LAYER", exchange.words), u32_const("Y_AT", exchange.y),
        u32_const("OUT_AT", exchange.out), u32_const("GATE_AT", exchange.gate),
        u32_const("DOWN_AT", exchange.down), u32_const("PARTS_AT", exchange.parts),
        u32_const("COUNTERS_AT", exchange.counters),
        u32_const("Q8_PLANE1", q8_plane1_offset(1, op.hidden_dim) / 4),
        u32_const("H_SUMS", BegunNorm::sums_offset(op.hidden_dim, true) / 4)}) {
    launch.consts.push_back(value);
  }
  add_attention_consts(op, heads.sizes, launch.consts);
  launch.grid.x = op.groups;
  launch.keys = keys_of(op);
  for (const LayerRange& range : ranges) {
    DP_CHECK(dispatch_range(ctx, op, range, table_of(op, shape, stages, exchange, range, table_rows(ranges)),
                            launch));
  }
  return {};
}

}  // namespace doppler::kernels
