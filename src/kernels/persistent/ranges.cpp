// ranges.h: consecutive layers gathered as far as buffers and bindings reach.
#include "kernels/persistent/ranges.h"

#include <algorithm>

namespace doppler::kernels {
namespace {

// "" or what of the layer does not fit the range, which then is worthless.
const char* add_layer(const PersistentLayers& op, const PersistentLayer& layer, uint64_t most_bytes,
                      LayerRange& range) {
  std::vector<const Weight*> weights = layer.qkv;
  weights.insert(weights.end(), {layer.out, layer.gate_up, layer.down});
  for (const Weight* weight : weights) {
    if (!range.weights.add(weight->pieces[0].buffer, most_bytes)) return "weights";
  }
  for (const TensorView norm : {range.first_norm, layer.ffn_norm, layer.next_norm}) {
    if (!range.vectors.add(norm, most_bytes)) return "norms and biases";
  }
  std::vector<TensorView> optional = layer.qkv_bias;
  optional.insert(optional.end(), {layer.out_bias, layer.gate_up_bias, layer.down_bias, layer.qk_norms,
                                   layer.post_attention_norm, layer.post_ffn_norm});
  for (const TensorView vector : optional) {
    if (vector.valid() && !range.vectors.add(vector, most_bytes)) return "norms and biases";
  }
  if (op.rotary_dim > 0 && !range.angles.add(layer.is_sliding ? op.sliding.table : op.table, most_bytes)) {
    return "rope tables";
  }
  for (const TensorView cache : {layer.cache.k, layer.cache.v}) {
    if (!range.cache.add(cache, most_bytes)) return "caches";
  }
  ++range.count;
  return "";
}

}  // namespace

bool BufferRange::add(TensorView added, uint64_t most_bytes) {
  if (!added.valid() || (view.valid() && view.slot != added.slot)) return false;
  TensorView both = view.valid() ? view : added;
  const uint64_t end = std::max(both.offset + both.bytes, added.offset + added.bytes);
  both.offset = std::min(both.offset, added.offset);
  both.bytes = end - both.offset;
  if (both.bytes > most_bytes) return false;
  view = both;
  return true;
}

Result<std::vector<LayerRange>> layer_ranges(const PersistentLayers& op, const gpu::Caps& caps) {
  std::vector<LayerRange> ranges;
  for (uint32_t i = 0; i < op.layers.size(); ++i) {
    if (!ranges.empty() && ranges.back().count < kMostLayersOfDispatch) {
      LayerRange longer = ranges.back();
      if (*add_layer(op, op.layers[i], caps.max_binding_bytes, longer) == '\0') {
        ranges.back() = longer;
        continue;
      }
    }
    LayerRange range{.first = i, .first_norm = i == 0 ? op.first_norm : op.layers[i - 1].next_norm};
    const char* const unfit = add_layer(op, op.layers[i], caps.max_binding_bytes, range);
    if (*unfit != '\0') {
      return fail(ErrorKind::kUnsupported, "the %s of layer %u do not lie within one binding (up to %s)",
                  unfit, i, format_bytes(caps.max_binding_bytes).c_str());
    }
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace doppler::kernels
