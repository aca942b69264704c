// Statements, scopes and macros. See interpreter.h.
#include "tokenizer/template/interpreter.h"

#include <algorithm>

#include "tokenizer/template/print.h"
#include "tokenizer/template/render_input.h"

namespace doppler::tmpl {

Interpreter::Interpreter(const Program& program, const RenderInput& input)
    : program_(program), input_(input), machine_(input.now ? *input.now : local_now()) {}

Interpreter::ScopeGuard::ScopeGuard(Interpreter& owner, Scope* parent)
    : owner_(owner), outer_(owner.scope_), scope_(std::make_unique<Scope>()) {
  scope_->parent = parent;
  owner_.scope_ = scope_.get();
}

Interpreter::ScopeGuard::~ScopeGuard() {
  owner_.scope_ = outer_;
  if (scope_->captured) owner_.captured_.push_back(std::move(scope_));
}

Result<void> Interpreter::enter(const Node& at) {
  machine_.set_line(at.line);
  if (depth_ > kMaxEvalDepth)
    return machine_.error("evaluation is nested deeper than %d levels.", kMaxEvalDepth);
  return machine_.spend(1);
}

Result<void> Interpreter::add_input(std::string_view name, const Json& json) {
  const auto it = std::find(program_.names.begin(), program_.names.end(), name);
  if (it == program_.names.end()) return {};
  DP_TRY(Value value, machine_.from_json(json));
  set_variable(static_cast<uint32_t>(it - program_.names.begin()), std::move(value));
  return {};
}

Result<std::string> Interpreter::run() {
  std::string result;
  out_ = &result;
  ScopeGuard context(*this, nullptr);
  DP_CHECK(add_input("messages", input_.messages));
  DP_CHECK(add_input("tools", input_.tools));
  DP_CHECK(add_input("documents", input_.documents));
  DP_CHECK(add_input("add_generation_prompt", Json(input_.add_generation_prompt)));
  DP_CHECK(add_input("bos_token", Json(input_.bos_token)));
  DP_CHECK(add_input("eos_token", Json(input_.eos_token)));
  if (!input_.extra.is_object() && !input_.extra.is_null()) {
    return fail(ErrorKind::kInvalidInput, "The extra variables of a chat template must be a JSON object.");
  }
  for (const auto& [name, value] : input_.extra.items()) DP_CHECK(add_input(name, value));
  ScopeGuard root(*this, scope_);
  DP_CHECK(execute(program_.root));
  return result;
}

Result<void> Interpreter::write(std::string_view text) {
  DP_CHECK(machine_.spend_bytes(text.size()));
  if (out_->size() + text.size() > kMaxOutputBytes) {
    return machine_.error("the output is larger than the allowed %s.", format_bytes(kMaxOutputBytes).c_str());
  }
  *out_ += text;
  return {};
}

void Interpreter::set_variable(uint32_t name, Value value) {
  for (auto& [existing, old] : scope_->variables) {
    if (existing == name) {
      old = std::move(value);
      return;
    }
  }
  scope_->variables.emplace_back(name, std::move(value));
}

Result<Value> Interpreter::lookup(uint32_t name) {
  uint64_t looked_at = 0;
  for (const Scope* scope = scope_; scope; scope = scope->parent) {
    looked_at += 1 + scope->variables.size();
    for (const auto& [existing, value] : scope->variables) {
      if (existing != name) continue;
      DP_CHECK(machine_.spend(looked_at / kBytesPerStep));
      return value;
    }
  }
  DP_CHECK(machine_.spend(looked_at / kBytesPerStep));
  const std::string& text = program_.names[name];
  if (const int global = find_global(text); global >= 0) return Value::function(global);
  return Value::undefined(format_text("'%s' is undefined", printable(text).c_str()));
}

Result<Interpreter::Flow> Interpreter::execute(NodeId id) {
  const Level level(*this);
  const Node& at = node(id);
  DP_CHECK(enter(at));
  switch (at.kind) {
    case NodeKind::kText:
      DP_CHECK(write(program_.constants[at.a].as_text()));
      return Flow::kNormal;
    case NodeKind::kOutput: {
      DP_TRY(const Value value, evaluate(at.a));
      machine_.set_line(at.line);
      if (value.is(Kind::kText)) {
        DP_CHECK(write(value.as_text()));
        return Flow::kNormal;
      }
      DP_TRY(const std::string text, to_string(machine_, value));
      DP_CHECK(write(text));
      return Flow::kNormal;
    }
    case NodeKind::kBlock:
      for (size_t i = 0; i < at.list_count; ++i) {
        DP_TRY(const Flow flow, execute(child(at, i)));
        if (flow != Flow::kNormal) return flow;
      }
      return Flow::kNormal;
    case NodeKind::kFor:
      return execute_for(at);
    case NodeKind::kIf:
      return execute_if(at);
    case NodeKind::kSet: {
      DP_TRY(Value value, evaluate(at.b));
      machine_.set_line(at.line);
      DP_CHECK(assign(node(at.a), std::move(value)));
      return Flow::kNormal;
    }
    case NodeKind::kSetBlock:
      DP_CHECK(execute_set_block(at));
      return Flow::kNormal;
    case NodeKind::kFilterBlock: {
      DP_TRY(std::string text, captured_output(at.b));
      const Value input = Value::text(std::move(text));
      DP_TRY(const Value value, evaluate_filter(node(at.a), &input));
      DP_TRY(const std::string filtered, to_string(machine_, value));
      DP_CHECK(write(filtered));
      return Flow::kNormal;
    }
    case NodeKind::kMacro: {
      const MacroSpec& spec = program_.macros[at.a];
      DP_TRY(Value macro, define_macro(spec));
      const auto it = std::find(program_.names.begin(), program_.names.end(), spec.name);
      set_variable(static_cast<uint32_t>(it - program_.names.begin()), std::move(macro));
      return Flow::kNormal;
    }
    case NodeKind::kCallBlock:
      DP_CHECK(execute_call_block(at));
      return Flow::kNormal;
    case NodeKind::kScope:
      return execute_scope(at);
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      return machine_.error("an expression stands where a statement is needed.");
  }
}

// The items of a for, those that fail its `if` left out.
Result<Value> Interpreter::chosen_items(const Node& at, const Value& iterable) {
  const LoopSpec& loop = program_.loops[at.a];
  machine_.set_line(at.line);
  DP_TRY(Value list, iterate(machine_, iterable));
  if (loop.condition == kNoNode) return list;
  Values chosen;
  for (const Value& item : list.items()) {
    const ScopeGuard scope(*this, scope_);
    DP_CHECK(assign(node(loop.target), item));
    DP_TRY(const Value keep, evaluate(loop.condition));
    if (keep.truthy()) chosen.push_back(item);
  }
  return machine_.list(std::move(chosen));
}

Result<Interpreter::Flow> Interpreter::execute_for(const Node& at) {
  DP_TRY(const Value iterable, evaluate(program_.loops[at.a].iterable));
  return run_loop(at, iterable, 0);
}

// loop(children), within a recursive loop: the text of the same loop over them, in the scope where it stands.
Result<Value> Interpreter::call_loop(const LoopState& loop, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(machine_, "loop()", arguments, {"iterable"}, 1));
  if (!loop.node || !program_.loops[loop.node->a].is_recursive)
    return machine_.error("only a loop that is running, and marked recursive, can be called.");
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  Result<Flow> flow = Flow::kNormal;
  {
    const ScopeGuard scope(*this, loop.scope);
    flow = run_loop(*loop.node, *a[0], loop.depth0 + 1);
  }
  out_ = outer;
  if (!flow) return forward(std::move(flow).error());
  return Value::text(std::move(text));
}

Result<Interpreter::Flow> Interpreter::run_loop(const Node& at, const Value& iterable, size_t depth0) {
  const LoopSpec& loop = program_.loops[at.a];
  DP_TRY(LoopState * state, machine_.new_loop());
  DP_TRY(state->items, chosen_items(at, iterable));
  state->node = &at;
  state->scope = scope_;
  state->depth0 = depth0;
  state->length = state->items.items().size();
  static constexpr std::string_view kLoop = "loop";
  const auto name = std::find(program_.names.begin(), program_.names.end(), kLoop);
  Flow flow = Flow::kNormal;
  for (size_t i = 0; i < state->length && flow != Flow::kBreak; ++i) {
    const ScopeGuard scope(*this, scope_);
    DP_CHECK(machine_.spend(1));
    state->index0 = i;
    if (name != program_.names.end()) {
      set_variable(static_cast<uint32_t>(name - program_.names.begin()), Value::of(state));
    }
    machine_.set_line(at.line);
    DP_CHECK(assign(node(loop.target), state->items.items()[i]));
    DP_TRY(flow, execute(loop.body));
  }
  const bool empty = state->length == 0;
  state->items = Value();  // a loop kept in a namespace has no neighbours any more
  state->node = nullptr;
  if (!empty || loop.otherwise == kNoNode) return Flow::kNormal;
  const ScopeGuard scope(*this, scope_);
  return execute(loop.otherwise);
}

Result<Interpreter::Flow> Interpreter::execute_if(const Node& at) {
  for (size_t i = 0; i < at.list_count; i += 2) {
    DP_TRY(const Value test, evaluate(child(at, i)));
    if (test.truthy()) return execute(child(at, i + 1));
  }
  return at.a == kNoNode ? Flow::kNormal : execute(at.a);
}

Result<std::string> Interpreter::captured_output(NodeId body) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  Result<Flow> flow = Flow::kNormal;
  {
    const ScopeGuard scope(*this, scope_);
    flow = execute(body);
  }
  out_ = outer;
  if (!flow) return forward(std::move(flow).error());
  return text;
}

Result<void> Interpreter::execute_set_block(const Node& at) {
  DP_TRY(std::string text, captured_output(at.b));
  Value value = Value::text(std::move(text));
  if (at.c != kNoNode) {
    const Value input = value;
    DP_TRY(value, evaluate_filter(node(at.c), &input));
  }
  return assign(node(at.a), std::move(value));
}

Result<Interpreter::Flow> Interpreter::execute_scope(const Node& at) {
  std::vector<Value> values;  // all of {% with a=1, b=a %} are evaluated outside
  for (size_t i = 0; i < at.list_count; i += 2) {
    DP_TRY(Value value, evaluate(child(at, i + 1)));
    values.push_back(std::move(value));
  }
  const ScopeGuard scope(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) DP_CHECK(assign(node(child(at, 2 * i)), std::move(values[i])));
  return execute(at.a);
}

Result<void> Interpreter::assign(const Node& target, Value value) {
  if (target.kind == NodeKind::kName) {
    set_variable(target.a, std::move(value));
    return {};
  }
  if (target.kind == NodeKind::kNamespaceRef) {
    DP_TRY(const Value space, lookup(target.a));
    if (!space.is(Kind::kNamespace)) return machine_.error("only a namespace's attributes can be set.");
    auto& items = space.as_namespace()->items;
    DP_CHECK(machine_.spend(1 + items.size() / kBytesPerStep));
    const std::string& name = program_.names[target.b];
    const auto it =
        std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == name; });
    if (it == items.end())
      items.emplace_back(name, std::move(value));
    else
      it->second = std::move(value);
    return {};
  }
  DP_TRY(const Value list, iterate(machine_, value));
  if (list.items().size() != target.list_count) {
    return machine_.error("%zu values cannot be assigned to %u names.", list.items().size(),
                          target.list_count);
  }
  for (size_t i = 0; i < target.list_count; ++i) DP_CHECK(assign(node(child(target, i)), list.items()[i]));
  return {};
}

Result<Value> Interpreter::define_macro(const MacroSpec& spec) {
  DP_CHECK(machine_.spend_bytes(sizeof(MacroState) + sizeof(Scope)));
  for (Scope* scope = scope_; scope && !scope->captured; scope = scope->parent) scope->captured = true;
  macros_.push_back(std::make_unique<MacroState>(MacroState{&spec, scope_}));
  return Value::of(macros_.back().get());
}

Result<void> Interpreter::execute_call_block(const Node& at) {
  DP_TRY(const Value caller, define_macro(program_.macros[at.a]));
  DP_TRY(const Value value, evaluate_call(node(at.b), &caller));
  DP_TRY(const std::string text, to_string(machine_, value));
  return write(text);
}

Result<Value> Interpreter::call_macro(const MacroState& macro, Arguments arguments) {
  const MacroSpec& spec = *macro.spec;
  const std::string name = printable(spec.name);
  const size_t given = std::min(arguments.positional.size(), spec.parameters.size());
  if (arguments.positional.size() > given && spec.varargs == kNoNode) {
    return machine_.error("macro %s takes at most %zu arguments, not %zu.", name.c_str(),
                          spec.parameters.size(), arguments.positional.size());
  }
  ScopeGuard scope(*this, macro.scope);
  if (spec.varargs != kNoNode) {
    const auto first = arguments.positional.begin() + static_cast<ptrdiff_t>(given);
    DP_TRY(Value rest, machine_.list(Values(first, arguments.positional.end()), Kind::kTuple));
    set_variable(spec.varargs, std::move(rest));
  }
  for (size_t i = 0; i < given; ++i) {
    set_variable(spec.parameters[i], std::move(arguments.positional[i]));
  }
  size_t used = 0;
  const size_t first_default = spec.parameters.size() - spec.defaults.size();
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    const std::string& parameter = program_.names[spec.parameters[i]];
    const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& argument) { return argument.first == parameter; });
    if (named != arguments.named.end()) {
      if (i < given) {
        return machine_.error("macro %s got argument '%s' twice.", name.c_str(),
                              printable(parameter).c_str());
      }
      ++used;
      set_variable(spec.parameters[i], named->second);
    } else if (i >= given) {
      Value value =
          Value::undefined(format_text("parameter '%s' was not provided", printable(parameter).c_str()));
      if (i >= first_default) {
        DP_TRY(value, evaluate(spec.defaults[i - first_default]));
      }
      set_variable(spec.parameters[i], std::move(value));
    }
  }
  Pairs rest;
  for (const auto& [argument, value] : arguments.named) {
    const auto id = std::find(program_.names.begin(), program_.names.end(), argument);
    const auto number = static_cast<uint32_t>(id - program_.names.begin());
    const bool is_parameter = std::ranges::find(spec.parameters, number) != spec.parameters.end();
    if (id != program_.names.end() && is_parameter) continue;
    if (argument == "caller") {
      if (id != program_.names.end()) set_variable(number, value);
      ++used;
    } else if (spec.kwargs != kNoNode) {
      rest.emplace_back(Value::text(argument), value);
      ++used;
    }
  }
  if (spec.kwargs != kNoNode) {
    DP_TRY(Value dict, machine_.dict(std::move(rest)));
    set_variable(spec.kwargs, std::move(dict));
  }
  if (used != arguments.named.size())
    return machine_.error("macro %s got an unknown named argument.", name.c_str());
  DP_TRY(std::string text, captured_output(spec.body));
  return Value::text(std::move(text));
}

}  // namespace doppler::tmpl
