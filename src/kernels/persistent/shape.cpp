// shape.h: the layers compared with the first. Read next: layers.cpp.
#include "kernels/persistent/shape.h"

namespace doppler::kernels {
namespace {

// "has a bias of q k v, norms of q and k", or "has nothing optional".
std::string has(const PersistentParts& parts) {
  std::string list;
  const auto add = [&](bool is_there, const char* name) {
    if (is_there) list += (list.empty() ? "" : ", ") + std::string(name);
  };
  add(parts.qkv_bias, "a bias of q k v");
  add(parts.out_bias, "a bias of the output");
  add(parts.gate_up_bias, "a bias of gate and up");
  add(parts.down_bias, "a bias of down");
  add(parts.qk_norms, "norms of q and k");
  add(parts.post_norms, "norms after its branches");
  return "has " + (list.empty() ? "nothing optional" : list);
}

Result<PersistentParts> parts_of(const PersistentLayer& layer, size_t i) {
  if (layer.post_attention_norm.valid() != layer.post_ffn_norm.valid()) {
    return fail(ErrorKind::kUnsupported, "layer %zu has a norm after only one of its branches", i);
  }
  if (!layer.qkv_bias.empty() && layer.qkv_bias.size() != layer.qkv.size()) {
    return fail(ErrorKind::kUnsupported, "q, k and v of layer %zu are %zu weights with %zu biases", i,
                layer.qkv.size(), layer.qkv_bias.size());
  }
  return PersistentParts{.qkv_bias = !layer.qkv_bias.empty(),
                         .out_bias = layer.out_bias.valid(),
                         .gate_up_bias = layer.gate_up_bias.valid(),
                         .down_bias = layer.down_bias.valid(),
                         .qk_norms = layer.qk_norms.valid(),
                         .post_norms = layer.post_attention_norm.valid()};
}

}  // namespace

Result<PersistentShape> persistent_shape(const PersistentLayers& op) {
  PersistentShape shape;
  if (op.layers.empty()) return fail(ErrorKind::kUnsupported, "there are no layers");
  const CacheView& cache = op.layers.front().cache;
  if (cache.format == CacheFormat::kQ8_0) return fail(ErrorKind::kUnsupported, "the cache is in q8_0");
  shape.qkv_rows = (op.n_heads + 2 * cache.n_kv_heads) * cache.head_dim;
  shape.format = shape.other = op.layers.front().qkv.front()->format;
  const auto name = [](const Weight& weight) { return weight_format_info(weight.format).name; };
  const auto note_other = [&](const Weight& weight) {
    if (weight.format == shape.format || weight.format == shape.other) return true;
    if (shape.other != shape.format) return false;
    shape.other = weight.format;
    return true;
  };
  for (size_t i = 0; i < op.layers.size(); ++i) {
    const PersistentLayer& layer = op.layers[i];
    if (layer.cache.ring_len != 0) {
      return fail(ErrorKind::kUnsupported, "the cache of layer %zu is a ring of %u positions", i,
                  layer.cache.ring_len);
    }
    DP_TRY(const PersistentParts parts, parts_of(layer, i));
    if (i == 0) shape.parts = parts;
    if (parts != shape.parts) {
      return fail(ErrorKind::kUnsupported, "layer %zu %s where the first layer %s", i, has(parts).c_str(),
                  has(shape.parts).c_str());
    }
    shape.has_sliding = shape.has_sliding || layer.is_sliding;
    if (!layer.gate_up) return fail(ErrorKind::kUnsupported, "gate and up of layer %zu have two formats", i);
    for (const Weight* weight : {layer.qkv.front(), layer.out, layer.gate_up}) {
      if (weight->format == shape.format) continue;
      return fail(ErrorKind::kUnsupported, "layer %zu has a weight in %s where the first has %s", i,
                  name(*weight), weight_format_info(shape.format).name);
    }
    if (layer.qkv.size() > 2)
      return fail(ErrorKind::kUnsupported, "q, k and v of layer %zu have three formats", i);
    if (layer.qkv.size() == 2) {
      const Weight& second = *layer.qkv[1];
      if (!note_other(second))
        return fail(ErrorKind::kUnsupported, "layer %zu has a third format, %s", i, name(second));
      if (second.format == shape.format) {
        return fail(ErrorKind::kUnsupported, "q, k and v of layer %zu are two weights in one format", i);
      }
      if (shape.first_rows != 0 && shape.first_rows != layer.qkv[0]->n) {
        return fail(ErrorKind::kUnsupported, "q, k and v are divided in two ways (layer %zu)", i);
      }
      shape.first_rows = layer.qkv[0]->n;
      shape.has_two_parts = true;
    }
    if (!note_other(*layer.down)) {
      return fail(ErrorKind::kUnsupported, "layer %zu has a third format, %s", i, name(*layer.down));
    }
    for (const Weight* weight : {layer.qkv.front(), layer.qkv.back(), layer.out, layer.gate_up, layer.down}) {
      const WeightFormatInfo& info = weight_format_info(weight->format);
      if (!info.tiled || !info.quantised()) {
        return fail(ErrorKind::kUnsupported, "layer %zu has a weight in %s, not in quantised tiles", i,
                    info.name);
      }
      if (weight->pieces.size() != 1) {
        return fail(ErrorKind::kUnsupported, "a weight of layer %zu is in %zu pieces", i,
                    weight->pieces.size());
      }
    }
  }
  return shape;
}

}  // namespace doppler::kernels
