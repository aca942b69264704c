// table.h: places in the buffers that a dispatch binds.
#include "kernels/persistent/table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

// The words that persistent_layers.wgsl reads about its dispatch, a stage, and a layer, in their order.
struct DispatchWords {
  uint32_t layers = 0, first_norm = 0, exchange = 0, one = 1;
};
struct StageWords {
  uint32_t first[2] = {}, other[2] = {};
  uint32_t split = 0, gain = 0, branch_gain = 0, bias = 0;
};
struct LayerWords {
  StageWords qkv, out, gate, down;
  uint32_t keys = 0, values = 0, window = 0, angles = 0;
  uint32_t attention_factor = 0, qk_norms = 0, second_qkv_bias = 0, unused = 0;
};
static_assert(sizeof(DispatchWords) == 16 && sizeof(LayerWords) == 10 * 16);
constexpr uint32_t kUniformBytes = 65536;  // WebGPU's limit of a uniform binding
static_assert(sizeof(DispatchWords) + kMostLayersOfDispatch * sizeof(LayerWords) <= kUniformBytes);

void put_place(const BufferRange& range, const Weight& weight, uint32_t (&place)[2]) {
  const WeightLayout layout = weight_layout(weight.format, weight.n, weight.k);
  const TensorView view = weight.pieces[0].buffer;
  place[0] = range.place(view, 16);
  place[1] = range.place(view.sub(layout.plane1_offset, 0), 4);
}

// A stage of `first`, or from item `split` on of `second`, if that has the other format.
StageWords stage_words(const BufferRange& weights, const Weight& first, const Weight& second,
                       uint32_t split) {
  StageWords words{.split = split};
  put_place(weights, first, words.first);
  put_place(weights, second, words.other);
  return words;
}

// 0 for an absent vector, which the kernel does not read.
uint32_t vector_place(const LayerRange& range, TensorView view) {
  return view.valid() ? range.vectors.place(view, 4) : 0;
}

void put_biases(const LayerRange& range, const PersistentLayer& layer, LayerWords& words) {
  if (!layer.qkv_bias.empty()) {
    words.qkv.bias = vector_place(range, layer.qkv_bias.front());
    // Rows are counted from the first part's on.
    const uint32_t first_rows = layer.qkv.size() == 2 ? layer.qkv.front()->n : 0;
    words.second_qkv_bias = vector_place(range, layer.qkv_bias.back()) - first_rows;
  }
  words.out.bias = vector_place(range, layer.out_bias);
  words.gate.bias = vector_place(range, layer.gate_up_bias);
  words.down.bias = vector_place(range, layer.down_bias);
}

// `before`: the norm of the layer's input, and the norm after the branch that makes it, if there is one.
struct NormsBefore {
  TensorView gain, branch_gain;
};

void put_norms(const LayerRange& range, const PersistentLayer& layer, const NormsBefore& before,
               LayerWords& words) {
  words.out.gain = vector_place(range, layer.ffn_norm);
  words.down.gain = vector_place(range, layer.next_norm);
  words.qk_norms = vector_place(range, layer.qk_norms);
  if (!layer.post_attention_norm.valid()) return;
  // The readers make the norms after branches; end_stream() makes the last one of a dispatch.
  words.down.branch_gain = vector_place(range, layer.post_ffn_norm);
  words.gate.gain = vector_place(range, layer.ffn_norm);
  words.gate.branch_gain = vector_place(range, layer.post_attention_norm);
  words.qkv.gain = vector_place(range, before.gain);
  words.qkv.branch_gain = vector_place(range, before.branch_gain);
}

LayerWords layer_words(const PersistentLayers& op, const PersistentShape& shape,
                       const PersistentStages& stages, const LayerRange& range,
                       const PersistentLayer& layer) {
  const auto words = [&](const PersistentStage& stage, const Weight& first, const Weight& second,
                         uint32_t split_row) {
    const bool is_split = second.format != shape.format;
    return stage_words(range.weights, first, second, is_split ? split_row / stage.rows : stage.items);
  };
  LayerWords one{.qkv = words(stages.qkv, *layer.qkv.front(), *layer.qkv.back(), layer.qkv.front()->n),
                 .out = words(stages.out, *layer.out, *layer.out, 0),
                 .gate = words(stages.gate, *layer.gate_up, *layer.gate_up, 0),
                 .down = words(stages.down, *layer.down, *layer.down, 0)};
  const uint32_t eight = layer.cache.format == CacheFormat::kF16 ? 16 : 32;
  one.keys = range.cache.place(layer.cache.k, eight);
  one.values = range.cache.place(layer.cache.v, eight);
  const uint32_t window = layer.is_sliding ? op.sliding.window : op.window;
  one.window = window == 0 ? UINT32_MAX : window;
  if (op.rotary_dim > 0) one.angles = range.angles.place(layer.is_sliding ? op.sliding.table : op.table, 8);
  one.attention_factor =
      std::bit_cast<uint32_t>(layer.is_sliding ? op.sliding.attention_factor : op.attention_factor);
  put_biases(range, layer, one);
  return one;
}

}  // namespace

uint32_t table_rows(std::span<const LayerRange> ranges) {
  constexpr uint32_t kStep = 16;  // in steps, so that more dispatches share a pipeline
  const uint32_t most = std::ranges::max(ranges, {}, &LayerRange::count).count;
  return (most + kStep - 1) / kStep * kStep;
}

std::vector<uint8_t> layer_table(const PersistentLayers& op, const PersistentShape& shape,
                                 const PersistentStages& stages, const ExchangeLayout& exchange,
                                 const LayerRange& range, uint32_t rows) {
  const DispatchWords head{.layers = range.count,
                           .first_norm = range.vectors.place(range.first_norm, 4),
                           .exchange = exchange.first + range.first * exchange.words};
  std::vector<LayerWords> layers;
  NormsBefore before{.gain = range.first_norm, .branch_gain = {}};
  for (const PersistentLayer& layer : std::span(op.layers).subspan(range.first, range.count)) {
    layers.push_back(layer_words(op, shape, stages, range, layer));
    put_norms(range, layer, before, layers.back());
    before = {.gain = layer.next_norm, .branch_gain = layer.post_ffn_norm};
  }
  std::vector<uint8_t> table(sizeof(DispatchWords) + rows * sizeof(LayerWords));
  std::memcpy(table.data(), &head, sizeof(head));
  std::memcpy(table.data() + sizeof(head), layers.data(), layers.size() * sizeof(LayerWords));
  return table;
}

}  // namespace doppler::kernels
