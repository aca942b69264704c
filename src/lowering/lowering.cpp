// lowering.h: the walk over the nodes, and what rules ask about values and products.
#include "lowering/lowering.h"

#include <algorithm>

namespace doppler::lowering {

using kernels::InputForm;
using kernels::PrologueKind;

Lowering::Lowering(const graph::Graph& graph, const BoundWeights& weights, const RuleSet& rule_set,
                   kernels::Context& ctx, const StepIo& io, PlanReport& report)
    : graph_(graph),
      weights_(weights),
      rule_set_(rule_set),
      ctx_(ctx),
      io_(io),
      report_(report),
      forms_(graph.value_count()),
      rows_(graph.value_count(), ctx.max_rows),
      selected_(graph.value_count()),
      live_(graph.nodes().size()),
      covered_(graph.nodes().size()),
      readers_(graph.value_count()),
      resolved_(graph.nodes().size()),
      hidden_kept_(graph.hidden().size()) {
  find_rows();
  find_live();
}

// After the selection, values have only the rows that choose a token.
void Lowering::find_rows() {
  for (const Node& node : graph_.nodes()) {
    uint32_t rows = ctx_.max_rows;
    bool selected = false;
    for (const Value& input : node.inputs) {
      rows = std::min(rows, rows_[input.index]);
      selected = selected || selected_[input.index];
    }
    if (node.kind() == OpKind::kLogitsRows) {
      selected = io_.logits_rows == LogitsRows::kLast || io_.logits_rows == LogitsRows::kSampled;
      if (selected) rows = io_.logits_rows == LogitsRows::kLast ? 1 : ctx_.tables.sequences;
    }
    for (const Value& output : node.outputs) {
      rows_[output.index] = rows;
      selected_[output.index] = selected;
    }
  }
}

// Nodes that the logits need, or without logits the residual stream; those with a cache or a state always.
void Lowering::find_live() {
  const std::vector<Node>& nodes = graph_.nodes();
  const auto need = [&](Value value) { live_[graph_.info(value).node] = true; };
  if (io_.logits_rows != LogitsRows::kNone) {
    need(graph_.logits());
    if (has_next()) need(graph_.next_logits());
  }
  for (size_t i = has_next() ? nodes.size() : graph_.next_begin(); i-- > 0;) {
    const bool is_end = nodes[i].kind() == OpKind::kLogitsRows && io_.logits_rows == LogitsRows::kNone;
    if (is_end && !is_on("dead_values")) need(nodes[i].inputs[0]);
    if (nodes[i].has_memory()) live_[i] = true;
    if (!live_[i]) continue;
    for (const Value& input : nodes[i].inputs) need(input);
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!live_[i]) continue;
    for (const Value& input : nodes[i].inputs) {
      std::vector<uint32_t>& list = readers_[input.index];
      if (nodes[i].kind() == OpKind::kLogitsRows) {
        const std::vector<uint32_t>& passed_on = readers_[nodes[i].outputs[0].index];
        list.insert(list.end(), passed_on.begin(), passed_on.end());
      } else if (std::ranges::find(list, i) == list.end()) {
        list.push_back(static_cast<uint32_t>(i));
      }
    }
  }
}

Result<Logits> Lowering::run() {
  DP_CHECK(graph_.error());
  DP_CHECK(lower_nodes(0, graph_.next_begin()));
  DP_CHECK(keep_states());
  return logits_;
}

Result<void> Lowering::run_next() {
  return lower_nodes(graph_.next_begin(), static_cast<uint32_t>(graph_.nodes().size()));
}

Result<void> Lowering::lower_nodes(uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; ++i) {
    if (!live_[i] || covered_[i]) continue;
    DP_CHECK_WHILE(lower(i), "recording %s", node(i).op_label.c_str());
    DP_CHECK(keep_hidden());
  }
  return {};
}

Result<void> Lowering::lower(uint32_t index) {
  for (const Rule& rule : rules()) {
    if ((rule.at & at(node(index).kind())) == 0) continue;
    if (!rule.is_plain && !is_on(rule.name)) continue;
    DP_TRY(const Outcome outcome, rule.apply(*this, index));
    if (outcome.applied) {
      note_applied(rule.name);
      cover(index);
      return {};
    }
    if (!outcome.refusal.empty()) note_refused(rule.name, index, outcome.refusal);
  }
  return fail(ErrorKind::kUnsupported, "No rule lowers %s here.", graph::op_name(node(index).kind()));
}

// Copies the residual stream when it is complete: the next sum writes the same buffer.
Result<void> Lowering::keep_hidden() {
  if (!io_.hidden.valid()) return {};
  for (size_t i = 0; i < hidden_kept_.size(); ++i) {
    const Value value = graph_.hidden()[i];
    const auto* rows = form_as<Rows>(value);
    if (hidden_kept_[i] || !rows || !rows->f32.valid()) continue;
    const uint64_t bytes = uint64_t{rows_[value.index]} * columns(value) * sizeof(float);
    DP_CHECK(ctx_.plan.copy(rows->f32, io_.hidden.sub(i * bytes, bytes), "hidden"));
    hidden_kept_[i] = true;
  }
  return {};
}

// The result of a model that ends with a norm.
Result<void> Lowering::keep_states() {
  if (io_.logits_rows != LogitsRows::kAll || logits_.all.valid()) return {};
  const Value states = graph_.logits();
  DP_TRY(const TensorView from, f32_of(states));
  const uint64_t bytes = uint64_t{rows_[states.index]} * columns(states) * sizeof(float);
  DP_CHECK(ctx_.plan.copy(from.sub(0, bytes), io_.logits.sub(0, bytes), "states"));
  logits_.all = io_.logits;
  return {};
}

kernels::Context Lowering::context_of(uint32_t index, Value input) const {
  kernels::Context ctx = ctx_;
  ctx.max_rows = rows_[input.index];
  if (selected_[input.index]) {
    ctx.fixed_rows = ctx.max_rows;  // the step has more rows than the selection
    if (io_.logits_rows == LogitsRows::kSampled) ctx.state = io_.sampled_state;
  }
  ctx.op_label = node(index).op_label;
  return ctx;
}

kernels::Context Lowering::context(uint32_t index) const {
  if (!node(index).inputs.empty()) return context_of(index, node(index).inputs[0]);
  kernels::Context ctx = ctx_;
  ctx.op_label = node(index).op_label;
  return ctx;
}

kernels::Context Lowering::unselected_context(uint32_t index) const {
  const Node& maker = node(graph_.info(node(index).inputs[0]).node);
  return maker.kind() == OpKind::kLogitsRows ? context_of(index, maker.inputs[0]) : context(index);
}

Result<TensorView> Lowering::f32_of(Value value) const {
  const auto* rows = form_as<Rows>(value);
  if (rows && rows->f32.valid()) return rows->f32;
  const auto* part = form_as<Columns>(value);
  if (part && part->stride == columns(value)) return part->buffer;
  return fail(ErrorKind::kUnsupported, "%s is not there as rows of its own.",
              node(graph_.info(value).node).op_label.c_str());
}

Result<TensorView> Lowering::in_place(uint32_t index) const {
  const Node& changing = node(index);
  if (!is_read_out(changing.inputs[0], index)) {
    return fail(ErrorKind::kUnsupported, "The value that %s changes is read again after it.",
                changing.op_label.c_str());
  }
  return f32_of(changing.inputs[0]);
}

Result<Columns> Lowering::columns_of(Value value) const {
  if (const auto* part = form_as<Columns>(value)) return *part;
  DP_TRY(const TensorView f32, f32_of(value));
  return Columns{.buffer = f32, .stride = static_cast<uint32_t>(columns(value))};
}

Result<kernels::Prologue> Lowering::prologue(Value value) const {
  const Form& made = form(value);
  if (const auto* rows = std::get_if<Rows>(&made)) return kernels::Prologue(*rows);
  if (const auto* norm = std::get_if<DeferredNorm>(&made)) return kernels::Prologue(*norm);
  if (const auto* norm = std::get_if<AddRmsNorm>(&made)) return kernels::Prologue(*norm);
  if (const auto* partials = std::get_if<SplitPartials>(&made)) return kernels::Prologue(*partials);
  DP_TRY(const TensorView f32, f32_of(value));
  return kernels::Prologue(Rows{.f32 = f32});
}

std::vector<uint32_t> Lowering::readers(Value value) const { return readers_[value.index]; }

std::optional<uint32_t> Lowering::only_reader(Value value, OpKind kind) const {
  const std::vector<uint32_t>& list = readers_[value.index];
  if (list.size() != 1 || node(list[0]).kind() != kind) return std::nullopt;
  return list[0];
}

bool Lowering::is_read_out(Value value, uint32_t except) const {
  return std::ranges::all_of(readers_[value.index],
                             [&](uint32_t reader) { return reader == except || covered_[reader]; });
}

kernels::SelectedRows Lowering::selected_rows(uint32_t index) const {
  using kernels::SelectedRows;
  const Node& maker = node(graph_.info(node(index).inputs[0]).node);
  if (maker.kind() != OpKind::kLogitsRows) return SelectedRows::kAll;
  if (io_.logits_rows == LogitsRows::kSampled) return SelectedRows::kSampled;
  return io_.logits_rows == LogitsRows::kLast ? SelectedRows::kLast : SelectedRows::kAll;
}

const AdapterProduct* Lowering::adapter(uint32_t index) const {
  const auto& products = weights_.adapters.products;
  return products.empty() || !products[index] ? nullptr : &*products[index];
}

kernels::AdapterRows Lowering::adapter_rows(Value value) const {
  return {
      .adapters = weights_.adapters.of_sequences, .state = ctx_.state, .selected = selected_[value.index]};
}

void Lowering::note_stacked(uint32_t index, const ResolvedLinear& made) {
  const size_t matrices = node(index).matrices.size();
  if (matrices < 2) return;
  if (made.projection->parts.size() < matrices) {
    note_applied("stacked_products");
  } else if (is_on("stacked_products")) {
    note_refused("stacked_products", index, "the number formats of its matrices differ");
  }
}

Result<const ResolvedLinear*> Lowering::resolve(uint32_t index) {
  std::optional<ResolvedLinear>& known = resolved_[index];
  if (known) return &*known;
  ResolvedLinear made{.projection = &weights_.products[index]};
  const kernels::Context ctx = context(index);
  const Node& linear = node(index);
  if (linear.kind() == OpKind::kExpertLinear) {
    for (const Projection::Part& part : made.projection->parts) {
      const uint32_t n = part.weight.n / (part.matrices * made.projection->n_experts);
      DP_TRY(kernels::ProductChoice choice, kernels::resolve_expert_product(ctx, part.weight, n));
      made.choices.push_back(std::move(choice));
    }
    note_stacked(index, made);
    known = std::move(made);
    return &*known;
  }
  if (linear.outputs.size() == 2 && is_on("gated_epilogue")) {
    const std::optional<uint32_t> gated = only_reader(linear.outputs[0], OpKind::kGated);
    if (gated && only_reader(linear.outputs[1], OpKind::kGated) == gated) {
      if (std::get<graph::Gated>(node(*gated).operation).limit != 0) {
        made.gate_refusal = "the gate has a limit";
      } else if (adapter(index)) {
        made.gate_refusal = "its adapters add to the gates before they are applied";
      } else if (made.projection->parts.size() == 1) {
        const kernels::Weight& weight = made.projection->parts[0].weight;
        const ActivationFn activation = std::get<graph::Gated>(node(*gated).operation).activation;
        DP_TRY(kernels::ProductChoice choice, kernels::resolve_product(ctx, weight, activation));
        made.gate_refusal = kernels::refuse_epilogue(ctx, weight, choice, kernels::EpilogueKind::kGate);
        if (made.gate_refusal.empty()) {
          made.gated_by = gated;
          made.choices.push_back(std::move(choice));
        }
      } else {
        made.gate_refusal = "gate and up are not one weight";
      }
    }
  }
  if (!made.gated_by) {
    for (const Projection::Part& part : made.projection->parts) {
      DP_TRY(kernels::ProductChoice choice, kernels::resolve_product(ctx, part.weight));
      made.choices.push_back(std::move(choice));
    }
  }
  note_stacked(index, made);
  known = std::move(made);
  return &*known;
}

Result<std::string> Lowering::refuse_prologue(uint32_t index, PrologueKind kind) {
  DP_TRY(const ResolvedLinear* resolved, resolve(index));
  const kernels::Context ctx = context(index);
  const std::vector<Projection::Part>& parts = resolved->projection->parts;
  if (kind == PrologueKind::kAddRmsNorm && resolved->projection->has_bias()) {
    return std::string("the product that reads it has a bias");
  }
  const bool is_made_by_product = kind == PrologueKind::kAddRmsNorm || kind == PrologueKind::kSplitPartials;
  if (is_made_by_product && adapter(index)) return std::string("the product's adapters read it too");
  // These are made once, by one dispatch.
  const bool once = kind == PrologueKind::kAddRmsNorm || kind == PrologueKind::kSplitPartials;
  if (once && parts.size() == 2 && is_on("paired_products")) {
    return kernels::refuse_pair(ctx, parts[0].weight, resolved->choices[0], parts[1].weight,
                                resolved->choices[1],
                                {.prologue = kind, .has_bias = resolved->projection->has_bias()});
  }
  if (once && parts.size() > 1) return std::string("the product that reads it is more than one dispatch");
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string reason = kernels::refuse_prologue(ctx, parts[i].weight, resolved->choices[i], kind);
    if (!reason.empty()) return reason;
    if (resolved->choices[i].reads() != resolved->choices[0].reads()) {
      return std::string("the products that read it read different forms");
    }
  }
  return std::string();
}

TensorView Lowering::scratch(std::string_view name, uint64_t floats) const {
  return ctx_.plan.scratch(name, floats * sizeof(float));
}

Result<Wanted> Lowering::wanted(Value value) {
  Wanted wanted{.f32 = readers_[value.index].empty()};
  for (const uint32_t reader : readers_[value.index]) {
    const bool is_product = node(reader).kind() == OpKind::kLinear ||
                            (node(reader).kind() == OpKind::kExpertLinear && node(reader).inputs[0] == value);
    if (!is_product || !is_on("producer_forms")) {
      wanted.f32 = true;
      continue;
    }
    DP_TRY(const ResolvedLinear* resolved, resolve(reader));
    wanted.f32 = wanted.f32 || adapter(reader) != nullptr;
    for (const kernels::ProductChoice& choice : resolved->choices) {
      wanted.f32 = wanted.f32 || choice.reads() == InputForm::kF32;
      wanted.q8 = wanted.q8 || choice.reads() == InputForm::kQ8;
      wanted.f16 = wanted.f16 || choice.reads() == InputForm::kF16;
    }
  }
  return wanted;
}

Result<Rows> Lowering::rows_for(Value value, std::string_view name, bool may_skip_f32) {
  DP_TRY(const Wanted forms, wanted(value));
  Rows out;
  if (forms.f32 || (forms.q8 && !may_skip_f32)) {
    out.f32 = scratch(buffer_name(value, name), rows_[value.index] * columns(value));
  }
  DP_CHECK(add_product_forms(value, name, out));
  return out;
}

Result<void> Lowering::add_product_forms(Value value, std::string_view name, Rows& out) {
  DP_TRY(const Wanted forms, wanted(value));
  if (forms.q8 || forms.f16) report_.note_applied("producer_forms");
  const std::string label = buffer_name(value, name);
  const auto k = static_cast<uint32_t>(columns(value));
  const uint32_t rows = rows_[value.index];
  if (forms.q8) out.q8 = ctx_.plan.scratch(label + ".q8", kernels::q8_bytes(rows, k));
  if (forms.f16) out.f16 = ctx_.plan.scratch(label + ".f16", kernels::f16_bytes(rows, k));
  return {};
}

std::string Lowering::buffer_name(Value value, std::string_view name) const {
  if (!is_next(graph_.info(value).node)) return std::string(name);
  return format_text("next.%u.%s", value.index, std::string(name).c_str());
}

bool Lowering::is_logits(Value value) const {
  if (value == graph_.logits()) return true;
  const std::optional<uint32_t> scale = only_reader(value, OpKind::kScale);
  return scale && is_logits(node(*scale).outputs[0]);
}

TensorView Lowering::product_buffer(uint32_t index) const {
  const Node& linear = node(index);
  if (linear.outputs[0] == graph_.next_logits()) return io_.next.logits;
  if (is_logits(linear.outputs[0])) return io_.logits;
  return scratch(linear.op_label, uint64_t{rows_[linear.outputs[0].index]} * weights_.products[index].n);
}

void Lowering::set_product(uint32_t index, TensorView buffer) {
  const Node& linear = node(index);
  if (linear.outputs[0] == graph_.logits()) logits_.all = buffer;
  if (linear.outputs.size() == 1) return set_form(linear.outputs[0], Rows{.f32 = buffer});
  uint32_t column = 0;
  for (const Value& output : linear.outputs) {
    set_form(output, Columns{.buffer = buffer, .stride = weights_.products[index].n, .column = column});
    column += graph_.info(output).columns;
  }
}

}  // namespace doppler::lowering
