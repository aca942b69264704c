// Graph::layers: the part of a model that one of several devices has.
#include "base/text.h"
#include "graph/graph.h"

namespace doppler::graph {

Result<Graph> Graph::layers(uint32_t first, uint32_t end) const {
  const auto count = static_cast<uint32_t>(hidden_.size()) - 1;
  if (hidden_.empty() || first >= end || end > count) {
    return fail(ErrorKind::kInternal, "Layers %u to %u of %u were asked for.", first, end, count);
  }
  Graph out;
  out.weights_ = weights_;
  std::vector<Value> made(values_.size());  // by value of this graph
  uint32_t begin = 0;
  if (first != 0) {
    const Value stream = hidden_[first];
    made[stream.index] = out.input(0, info(stream).columns);
    begin = info(stream).node + 1;
  }
  const uint32_t last = end == count ? next_begin() : info(hidden_[end]).node + 1;
  const auto copy = [&](const Node& node) {
    Node part = node;
    part.outputs.clear();
    for (Value& input : part.inputs) input = made[input.index];
    std::vector<uint32_t> columns;
    for (const Value& output : node.outputs) columns.push_back(info(output).columns);
    const std::vector<Value> outputs = out.add_node(std::move(part), columns);
    for (size_t i = 0; i < outputs.size(); ++i) made[node.outputs[i].index] = outputs[i];
  };
  const auto reads_before = [&](const Node& node, const std::string& what) {
    return fail(ErrorKind::kUnsupported, "The model cannot be split before layer %u: %s reads %s.", first,
                node.op_label.c_str(), what.c_str());
  };
  for (uint32_t i = begin; i < last; ++i) {
    const Node& node = nodes_[i];
    for (const Value& input : node.inputs) {
      if (made[input.index].valid()) continue;
      const Node& maker = nodes_[info(input).node];
      if (maker.kind() != OpKind::kEveryExpert) return reads_before(node, maker.op_label);
      copy(maker);
    }
    if (node.reads_earlier_cache()) {
      const uint32_t layer = std::get<Attention>(node.operation).cache_layer;
      if (layer < first) return reads_before(node, format_text("the keys of layer %u", layer));
    }
    copy(node);
  }
  for (uint32_t i = first; i <= end; ++i) out.mark_hidden(made[hidden_[i].index]);
  out.set_logits(end == count ? made[logits_.index] : made[hidden_[end].index]);
  return out;
}

}  // namespace doppler::graph
