// Records the forward pass of a graph for one plan: walks the nodes, lets the first rule that applies record each, and
// knows for rules what they ask: who reads a value, in which form, and which variant of a product that will be.
// Read next: rule.h, rules.cpp, then a rule such as residual_epilogue.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/embed/embed_norm.h"
#include "kernels/low_rank/low_rank.h"
#include "kernels/moe/expert_linear.h"
#include "kernels/rms_norm/rms_norm.h"
#include "lowering/bound_weights.h"
#include "lowering/form.h"
#include "lowering/rule.h"
#include "lowering/step_io.h"

namespace doppler::lowering {

using graph::Node;
using graph::OpKind;
using graph::Value;

// A linear node's products, the variant of each part chosen once.
struct ResolvedLinear {
  const Projection* projection = nullptr;
  std::vector<kernels::ProductChoice> choices;  // one a part
  // The node that gates the outputs inside the product; none: each part has an epilogue of its own.
  std::optional<uint32_t> gated_by;
  std::string gate_refusal;  // the reason if such a node cannot
};

// The forms in which the readers of a value take it.
struct Wanted {
  bool f32 = false, q8 = false, f16 = false;
};

class Lowering {
 public:
  // ctx, io and report: of the plan being recorded. All must outlive the object.
  Lowering(const graph::Graph& graph, const BoundWeights& weights, const RuleSet& rule_set,
           kernels::Context& ctx, const StepIo& io, PlanReport& report);
  // Up to the logits.
  Result<Logits> run();
  // Then the next-token layer, of the rows that run() gave logits. Behind it StepIo::next has the logits.
  Result<void> run_next();

  // The input of the next step: token embedding and first norm. ctx is of one row; the caller fills in the token.
  // Error: the graph does not begin so.
  Result<kernels::EmbedNorm> step_input();
  // True if the graph begins so.
  static bool has_step_input(const graph::Graph& graph);

  // For rules. ------------------------------------------------------------------------------------------------------
  const graph::Graph& graph() const { return graph_; }
  const BoundWeights& weights() const { return weights_; }
  const StepIo& io() const { return io_; }
  const Node& node(uint32_t index) const { return graph_.nodes()[index]; }
  bool is_on(std::string_view rule) const { return rule_set_.has(rule); }
  void note_applied(std::string_view rule) { report_.note_applied(rule); }
  void note_refused(std::string_view rule, uint32_t node_index, const std::string& reason) {
    report_.note_refused(rule, node(node_index).op_label, reason);
  }

  // The context in which a node is recorded, its label set; after the selection it has the selected rows.
  kernels::Context context(uint32_t node_index) const;
  // The same before the selection: for what selects rows itself.
  kernels::Context unselected_context(uint32_t node_index) const;
  // Rows that a value has at most.
  uint32_t rows(Value value) const { return rows_[value.index]; }

  const Form& form(Value value) const { return forms_[value.index]; }
  template <class T>
  const T* form_as(Value value) const {
    return std::get_if<T>(&forms_[value.index]);
  }
  // Error: the value is not there as f32 rows.
  Result<TensorView> f32_of(Value value) const;
  // The f32 rows of a node's first input, which the node writes in place. Error: a later node reads them.
  Result<TensorView> in_place(uint32_t node_index) const;
  // Error: the value is there neither as columns of wider rows nor as f32 rows.
  Result<Columns> columns_of(Value value) const;
  // x as a product reads it. Error: a form that no product reads.
  Result<kernels::Prologue> prologue(Value value) const;
  void set_form(Value value, Form form) { forms_[value.index] = std::move(form); }
  void cover(uint32_t node_index) { covered_[node_index] = true; }

  // The nodes that read a value and will be recorded; what a selection of rows passes on is read by its readers.
  std::vector<uint32_t> readers(Value value) const;
  // The one such node, if it is the only one and of this kind.
  std::optional<uint32_t> only_reader(Value value, OpKind kind) const;
  // True if all readers but `except` were recorded: then the buffer may be written again.
  bool is_read_out(Value value, uint32_t except) const;
  // The rows of its input that a node reads.
  kernels::SelectedRows selected_rows(uint32_t node_index) const;

  // For a linear node or one of experts.
  Result<const ResolvedLinear*> resolve(uint32_t linear_node);
  // Why the products of a linear node do not all have a prologue; "" if they have.
  Result<std::string> refuse_prologue(uint32_t linear_node, kernels::PrologueKind kind);

  // The matrices that adapters may add to the outputs of a linear or embed node. Null: none. adapter_rows() gives the
  // adapters of a value's rows.
  const AdapterProduct* adapter(uint32_t node_index) const;
  kernels::AdapterRows adapter_rows(Value value) const;

  void set_logits(const Logits& logits) { logits_ = logits; }

  // The forms that the readers of a value want; only f32 without the rule producer_forms.
  Result<Wanted> wanted(Value value);
  // Buffers for a value in the forms that its readers take. f32 is there too if a producer of 8 bits writes it anyway,
  // unless that producer may leave it out.
  Result<Rows> rows_for(Value value, std::string_view name, bool may_skip_f32 = false);
  // Adds the forms that only products read: 8 bits and f16 tiles.
  Result<void> add_product_forms(Value value, std::string_view name, Rows& out);
  // True if a value is the logits, or becomes them in place.
  bool is_logits(Value value) const;
  // True if a node is of the next-token layer.
  bool is_next(uint32_t node_index) const { return node_index >= graph_.next_begin(); }
  // A buffer for all outputs of a linear node beside one another; the logits' own for those.
  TensorView product_buffer(uint32_t linear_node) const;
  void set_product(uint32_t linear_node, TensorView buffer);
  TensorView scratch(std::string_view name, uint64_t floats) const;

 private:
  Result<void> lower(uint32_t node_index);
  Result<void> lower_nodes(uint32_t first, uint32_t end);
  bool has_next() const { return io_.next.tokens.valid(); }
  // Values of the next-token layer exist beside the model's, so each has a buffer of its own.
  std::string buffer_name(Value value, std::string_view name) const;
  void note_stacked(uint32_t linear_node, const ResolvedLinear& made);
  Result<void> keep_hidden();
  Result<void> keep_states();
  void find_live();
  void find_rows();
  // The same of the rows that a value has.
  kernels::Context context_of(uint32_t node_index, Value input) const;
  uint64_t columns(Value value) const { return graph_.info(value).columns; }

  const graph::Graph& graph_;
  const BoundWeights& weights_;
  const RuleSet& rule_set_;
  kernels::Context& ctx_;
  const StepIo& io_;
  PlanReport& report_;
  std::vector<Form> forms_;                              // by value
  std::vector<uint32_t> rows_;                           // by value
  std::vector<bool> selected_;                           // by value: after the selection of rows
  std::vector<bool> live_, covered_;                     // by node
  std::vector<std::vector<uint32_t>> readers_;           // by value
  std::vector<std::optional<ResolvedLinear>> resolved_;  // by node
  std::vector<bool> hidden_kept_;                        // by place in Graph::hidden()
  Logits logits_;
};

}  // namespace doppler::lowering
