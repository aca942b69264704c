#include "model/bind_weights.h"

#include <array>
#include <bit>
#include <numeric>
#include <optional>

#include "formats/architectures/rope_frequencies.h"
#include "formats/architectures/tensor_names.h"
#include "formats/architectures/xielu.h"
#include "kernels/rope/rope.h"

namespace doppler::model {
namespace {

using graph::Node;
using graph::OpKind;
using graph::Value;
using kernels::TensorView;
using lowering::BoundWeights;
using lowering::Projection;

class Binder {
 public:
  Binder(WeightLoader& loader, const graph::Graph& graph, const formats::ModelConfig& config,
         BindOptions options)
      : loader_(loader),
        graph_(graph),
        config_(config),
        options_(options),
        stacks_(options.rules.has("stacked_products")) {}

  Task<Result<BoundWeights>> bind() {
    const size_t nodes = graph_.nodes().size();
    bound_.products.resize(nodes);
    bound_.tables.resize(nodes);
    bound_.vectors.resize(graph_.weights().size());
    bound_.head_norms.resize(nodes);
    bound_.node_vectors.resize(nodes);
    for (uint32_t i = 0; i < nodes; ++i) {
      DP_CO_CHECK_WHILE(co_await bind_node(i), "loading %s", graph_.nodes()[i].op_label.c_str());
    }
    DP_CO_CHECK(co_await bind_ropes(options_.ctx_len));
    co_return std::move(bound_);
  }

 private:
  formats::StoredTensor stored(const graph::WeightInfo& weight) const {
    return formats::stored_tensor(config_, weight.tensor, weight.layer);
  }

  std::optional<uint32_t> layer_of(const Node& node) const {
    for (const graph::Matrix& matrix : node.matrices) {
      if (is_in_layer(graph_.info(matrix).tensor)) return graph_.info(matrix).layer;
    }
    for (const graph::Vector& vector : node.vectors) {
      if (is_in_layer(graph_.info(vector).tensor)) return graph_.info(vector).layer;
    }
    return std::nullopt;
  }

  Task<Result<void>> bind_node(uint32_t index) {
    const Node& node = graph_.nodes()[index];
    const std::optional<uint32_t> layer = layer_of(node);
    if (layer && layer != layer_) {
      layer_ = layer;
      DP_CO_CHECK(co_await loader_.begin_layer(*layer));
    }
    if (node.kind() == OpKind::kEmbed) {
      const graph::WeightInfo& table = graph_.info(node.matrices[0]);
      if (table.tensor == TensorId::kLayerTable && options_.host_rows != 0) {
        co_return co_await bind_host_rows(index, stored(table));
      }
      if (table_ && is_same_table(index, *table_)) {
        bound_.tables[index] = bound_.tables[*table_];
        co_return Result<void>();
      }
      DP_CO_TRY(bound_.tables[index], co_await loader_.matrix(stored(table)));
      if (table.tensor == TensorId::kEmbedding) table_ = index;
    } else if (node.kind() == OpKind::kRmsNorm || node.kind() == OpKind::kGatedNorm) {
      if (bound_.vectors[node.vectors[0].index].valid()) co_return Result<void>();  // of an earlier node
      DP_CO_TRY(bound_.vectors[node.vectors[0].index],
                co_await loader_.norm(stored(graph_.info(node.vectors[0]))));
    } else if (node.kind() == OpKind::kHeadNorm && is_apart(node)) {
      DP_CO_TRY(bound_.vectors[node.vectors[0].index],
                co_await loader_.norm(stored(graph_.info(node.vectors[0]))));
    } else if (node.kind() == OpKind::kPositions) {
      for (const graph::Vector& table : node.vectors) {
        DP_CO_TRY(bound_.vectors[table.index], co_await loader_.norm(stored(graph_.info(table))));
      }
    } else if (node.kind() == OpKind::kTableRows) {
      DP_CO_TRY(bound_.vectors[node.vectors[0].index],
                co_await loader_.norm(stored(graph_.info(node.vectors[0]))));
    } else if (node.kind() == OpKind::kXielu) {
      DP_CO_TRY(bound_.vectors[node.vectors[0].index], co_await xielu(graph_.info(node.vectors[0])));
    } else if (node.kind() == OpKind::kLinear) {
      DP_CO_TRY(bound_.products[index], co_await product(node));
    } else if (node.kind() == OpKind::kExpertLinear) {
      DP_CO_TRY(bound_.products[index], co_await experts(node));
    } else if (node.kind() == OpKind::kRoute || node.kind() == OpKind::kMultiply ||
               node.kind() == OpKind::kClamp || node.kind() == OpKind::kStandardise) {
      for (const graph::Vector& vector : node.vectors) {
        if (bound_.vectors[vector.index].valid()) continue;  // of an earlier node
        DP_CO_TRY(bound_.vectors[vector.index], co_await loader_.norm(stored(graph_.info(vector))));
      }
    } else if (node.kind() == OpKind::kAttention) {
      DP_CO_TRY(bound_.head_norms[index], co_await head_norms(node));
      for (const graph::Vector& sinks : node.vectors) {
        DP_CO_TRY(bound_.vectors[sinks.index], co_await loader_.norm(stored(graph_.info(sinks))));
      }
    } else if (graph::has_state(node.kind()) || node.kind() == OpKind::kAltupPredict ||
               node.kind() == OpKind::kAltupCorrect || node.kind() == OpKind::kLayerNorm) {
      std::vector<formats::StoredTensor> vectors;
      for (const graph::Vector& vector : node.vectors) vectors.push_back(stored(graph_.info(vector)));
      DP_CO_TRY(bound_.node_vectors[index], co_await loader_.norms(std::move(vectors)));
    }
    co_return Result<void>();
  }

  Task<Result<void>> bind_host_rows(uint32_t index, formats::StoredTensor table) {
    DP_CO_TRY(bound_.tables[index], co_await loader_.host_matrix(std::move(table), options_.host_rows));
    std::vector<uint32_t> numbers(options_.host_rows);
    std::iota(numbers.begin(), numbers.end(), 0);
    bound_.host_rows.emplace(lowering::HostRows{.node = index, .numbers = {}});
    DP_CO_TRY(bound_.host_rows->numbers, co_await loader_.values("row_numbers", std::move(numbers)));
    co_return Result<void>();
  }

  Task<Result<Projection>> product(const Node& node) {
    const graph::WeightInfo& first = graph_.info(node.matrices[0]);
    const uint32_t k = first.shape[1];
    if (first.tensor == TensorId::kEmbedding || first.tensor == TensorId::kOutput) {  // the head
      Projection head{.parts = {{}}, .n = first.shape[0], .k = k};
      if (table_ && graph_.nodes()[*table_].matrices[0].index == node.matrices[0].index) {  // tied
        head.parts[0].weight = bound_.tables[*table_];
      } else if (head_ && head_->matrix == node.matrices[0].index) {
        head.parts[0].weight = head_->weight;
      } else {
        DP_CO_TRY(head.parts[0].weight, co_await loader_.matrix(stored(first)));
        head_ = Head{.matrix = node.matrices[0].index, .weight = head.parts[0].weight};
      }
      co_return head;
    }
    std::vector<formats::StoredTensor> matrices;
    for (const graph::Matrix& matrix : node.matrices) matrices.push_back(stored(graph_.info(matrix)));
    co_return co_await loader_.projection(std::move(matrices), stacks_);
  }

  Task<Result<Projection>> experts(const Node& node) {
    std::vector<formats::StoredTensor> matrices;
    for (const graph::Matrix& matrix : node.matrices) matrices.push_back(stored(graph_.info(matrix)));
    WeightLoader::ExpertUse use{.n_used = std::get<graph::ExpertLinear>(node.operation).n_used,
                                .stacks = stacks_};
    if (maker(node.inputs[1]).kind() == OpKind::kRoute) {
      use.slots = options_.expert_slots;
      use.tag = graph_.info(node.inputs[1]).node + 1;
    }
    co_return co_await loader_.experts(std::move(matrices), use);
  }

  bool is_same_table(uint32_t index, uint32_t other) const {
    return graph_.nodes()[index].matrices[0].index == graph_.nodes()[other].matrices[0].index;
  }

  const Node& maker(Value value) const { return graph_.nodes()[graph_.info(value).node]; }

  // A norm with a dispatch and a weight of its own: attention does the others.
  bool is_apart(const Node& head_norm) const {
    if (head_norm.vectors.empty()) return false;
    return is_behind_rotation(head_norm) || !is_attended(head_norm.outputs[0]);
  }
  bool is_attended(Value value) const {
    for (const uint32_t reader : graph_.readers(value)) {
      const Node& node = graph_.nodes()[reader];
      if (node.kind() == OpKind::kAttention) return !node.reads_earlier_cache();
      const bool passes_on = node.kind() == OpKind::kRope || node.kind() == OpKind::kQueryScale;
      if (passes_on && is_attended(node.outputs[0])) return true;
    }
    return false;
  }
  bool is_behind_rotation(const Node& head_norm) const {
    return maker(head_norm.inputs[0]).kind() == OpKind::kRope;
  }

  // The numbers of a layer's activation, made of what the checkpoint has.
  Task<Result<TensorView>> xielu(graph::WeightInfo weight) {
    std::array<float, formats::kXieluParts.size()> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!config_.xielu.empty()) {
        numbers[i] = config_.xielu[weight.layer * numbers.size() + i];
        continue;
      }
      DP_CO_TRY(const std::vector<float> values,
                co_await loader_.host_vector(stored(weight).name + formats::kXieluParts[i]));
      numbers[i] = values[0];
    }
    std::vector<uint32_t> words;
    for (const float term : formats::xielu_terms(numbers)) words.push_back(std::bit_cast<uint32_t>(term));
    co_return co_await loader_.values(weight.label(), std::move(words));
  }

  // The norms of q and k beside one another, since a kernel that rotates reads both. Norms of all of q and k are there
  // separately too, for attention that takes them normalised.
  Task<Result<TensorView>> head_norms(const Node& attention) {
    std::vector<formats::StoredTensor> norms;
    if (attention.reads_earlier_cache()) co_return TensorView{};
    for (const Value& input : {attention.inputs[0], attention.inputs[1]}) {
      Value value = input;
      while (true) {
        const Node& made_by = maker(value);
        const bool is_norm = made_by.kind() == OpKind::kRmsNorm ||  // of all of q or k
                             (made_by.kind() == OpKind::kHeadNorm && !is_behind_rotation(made_by));
        if (is_norm) norms.push_back(stored(graph_.info(made_by.vectors[0])));
        if (!is_norm && made_by.kind() != OpKind::kRope) break;
        value = made_by.inputs[0];
      }
    }
    if (norms.empty()) co_return TensorView{};
    if (norms.size() != 2) {
      co_return fail(ErrorKind::kUnsupported, "Either q or k is normalised and the other is not.");
    }
    co_return co_await loader_.norms(std::move(norms));
  }

  Task<Result<void>> bind_ropes(uint32_t ctx_len) {
    for (const formats::RopeConfig* rope : {&config_.rope, &config_.local_rope}) {
      if (rope->rotary_dim == 0) continue;
      std::vector<float> divisors;
      const std::string name = formats::divisors_tensor(*rope, ctx_len);
      if (!name.empty()) {
        DP_CO_TRY(divisors, co_await loader_.host_vector(name));
      }
      DP_CO_TRY(const formats::RopeFrequencies frequencies,
                formats::rope_frequencies(*rope, ctx_len, config_.ctx_len, divisors));
      lowering::RopeTable table{.table = {}, .attention_factor = frequencies.attention_factor};
      DP_CO_TRY(table.table,
                co_await loader_.values("rope_table", kernels::make_rope_table(frequencies.inv_freq)));
      bound_.ropes.push_back(table);
    }
    co_return Result<void>();
  }

  WeightLoader& loader_;
  const graph::Graph& graph_;
  const formats::ModelConfig& config_;
  const BindOptions options_;
  const bool stacks_;
  BoundWeights bound_;
  std::optional<uint32_t> table_;  // the embedding's node
  struct Head {
    uint32_t matrix = 0;
    kernels::Weight weight;
  };
  std::optional<Head> head_;       // the next-token layer ends with it too
  std::optional<uint32_t> layer_;  // being loaded
};

}  // namespace

Task<Result<BoundWeights>> bind_weights(WeightLoader& loader, const graph::Graph& graph,
                                        const formats::ModelConfig& config, BindOptions options) {
  Binder binder(loader, graph, config, options);
  co_return co_await binder.bind();
}

}  // namespace doppler::model
