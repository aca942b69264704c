// Expressions. Each function sets the line anew after its operands, which may stand on other lines.
#include <algorithm>

#include "tokenizer/template/interpreter.h"
#include "tokenizer/template/methods.h"
#include "tokenizer/template/print.h"

namespace doppler::tmpl {

Result<Value> Interpreter::evaluate(NodeId id) {
  const Level level(*this);
  const Node& at = node(id);
  DP_CHECK(enter(at));
  switch (at.kind) {
    case NodeKind::kConst:
      return program_.constants[at.a];
    case NodeKind::kName:
      return lookup(at.a);
    case NodeKind::kList:
    case NodeKind::kTuple:
    case NodeKind::kDict:
    case NodeKind::kConcat:
      return evaluate_collection(at);
    case NodeKind::kArithmetic: {
      DP_TRY(const Value left, evaluate(at.a));
      const auto op = static_cast<Operator>(at.op);
      if (op == Operator::kNeg) return negate(machine_, left);
      if (op == Operator::kPos) return left.is_number() ? Result<Value>(left) : negate(machine_, left);
      DP_TRY(const Value right, evaluate(at.b));
      machine_.set_line(at.line);
      return arithmetic(machine_, op, left, right);
    }
    case NodeKind::kAnd:
    case NodeKind::kOr: {
      DP_TRY(Value left, evaluate(at.a));
      if (left.truthy() == (at.kind == NodeKind::kOr)) return left;
      return evaluate(at.b);
    }
    case NodeKind::kNot: {
      DP_TRY(const Value value, evaluate(at.a));
      return Value::boolean(!value.truthy());
    }
    case NodeKind::kCompare:
      return evaluate_comparison(at);
    case NodeKind::kCondition: {
      DP_TRY(const Value test, evaluate(at.b));
      if (test.truthy()) return evaluate(at.a);
      if (at.c != kNoNode) return evaluate(at.c);
      return Value::undefined("an inline if was false and has no else");
    }
    case NodeKind::kAttribute: {
      DP_TRY(const Value object, evaluate(at.a));
      machine_.set_line(at.line);
      return get_attribute(machine_, object, program_.names[at.b]);
    }
    case NodeKind::kItem: {
      DP_TRY(const Value object, evaluate(at.a));
      DP_TRY(const Value key, evaluate(at.b));
      machine_.set_line(at.line);
      return get_item(machine_, object, key);
    }
    case NodeKind::kSlice:
      return evaluate_slice(at);
    case NodeKind::kCall:
      return evaluate_call(at, nullptr);
    case NodeKind::kFilter:
      return evaluate_filter(at, nullptr);
    case NodeKind::kTest:
      return evaluate_test(at);
    default:
      return machine_.error("a statement stands where an expression is needed.");
  }
}

Result<Value> Interpreter::evaluate_collection(const Node& at) {
  if (at.kind == NodeKind::kConcat) {
    std::string text;
    for (size_t i = 0; i < at.list_count; ++i) {
      DP_TRY(const Value value, evaluate(child(at, i)));
      DP_CHECK(append_text(machine_, text, value));
    }
    return Value::text(std::move(text));
  }
  if (at.kind == NodeKind::kDict) {
    Pairs pairs;
    for (size_t i = 0; i < at.list_count; i += 2) {
      DP_TRY(Value key, evaluate(child(at, i)));
      DP_TRY(Value value, evaluate(child(at, i + 1)));
      DP_CHECK(put_pair(machine_, pairs, std::move(key), std::move(value)));
    }
    return machine_.dict(std::move(pairs));
  }
  Values items;
  items.reserve(at.list_count);
  for (size_t i = 0; i < at.list_count; ++i) {
    DP_TRY(Value value, evaluate(child(at, i)));
    items.push_back(std::move(value));
  }
  return machine_.list(std::move(items), at.kind == NodeKind::kTuple ? Kind::kTuple : Kind::kList);
}

// a < b < c is a < b and b < c, with b evaluated once.
Result<Value> Interpreter::evaluate_comparison(const Node& at) {
  DP_TRY(Value left, evaluate(child(at, 0)));
  for (size_t i = 1; i < at.list_count; i += 2) {
    DP_TRY(Value right, evaluate(child(at, i + 1)));
    machine_.set_line(at.line);
    DP_TRY(const bool holds, compare(machine_, static_cast<Comparison>(child(at, i)), left, right));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Interpreter::evaluate_slice(const Node& at) {
  DP_TRY(const Value object, evaluate(at.a));
  Value bounds[3] = {Value::none(), Value::none(), Value::none()};
  for (size_t i = 0; i < 3; ++i) {
    if (child(at, i) == kNoNode) continue;
    DP_TRY(bounds[i], evaluate(child(at, i)));
  }
  machine_.set_line(at.line);
  return get_slice(machine_, object, bounds[0], bounds[1], bounds[2]);
}

Result<Arguments> Interpreter::evaluate_arguments(const CallSpec& call) {
  Arguments arguments;
  for (const NodeId id : call.positional) {
    DP_TRY(Value value, evaluate(id));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, id] : call.named) {
    DP_TRY(Value value, evaluate(id));
    arguments.named.emplace_back(name, std::move(value));
  }
  if (call.star != kNoNode) {
    DP_TRY(const Value value, evaluate(call.star));
    DP_TRY(const Value list, iterate(machine_, value));
    DP_CHECK(machine_.spend_bytes(list.items().size() * sizeof(Value)));
    arguments.positional.insert(arguments.positional.end(), list.items().begin(), list.items().end());
  }
  if (call.double_star != kNoNode) {
    DP_TRY(const Value value, evaluate(call.double_star));
    if (!value.is(Kind::kDict)) return machine_.error("** needs a dict, not %s.", value.type_name());
    for (const auto& [key, item] : value.pairs()) {
      DP_TRY(const std::string_view name, text_or(machine_, "**", &key, ""));
      DP_CHECK(machine_.spend_bytes(sizeof(Value) + name.size()));
      arguments.named.emplace_back(name, item);
    }
  }
  return arguments;
}

Result<Value> Interpreter::evaluate_call(const Node& at, const Value* caller) {
  DP_TRY(const Value callee, evaluate(at.a));
  DP_TRY(Arguments arguments, evaluate_arguments(program_.calls[at.b]));
  if (caller) arguments.named.emplace_back("caller", *caller);
  machine_.set_line(at.line);
  switch (callee.kind()) {
    case Kind::kFunction:
      return call_global(machine_, callee.as_function(), arguments);
    case Kind::kMethod:
      return call_method(machine_, callee.as_method().self, callee.as_method().name, arguments);
    case Kind::kMacro:
      return call_macro(*callee.as_macro(), std::move(arguments));
    case Kind::kLoop:
      return call_loop(*callee.as_loop(), arguments);
    case Kind::kCounter: {
      CounterState& counter = *callee.as_counter();
      if (!counter.is_joiner || !arguments.positional.empty() || !arguments.named.empty())
        return machine_.error("only a joiner can be called, and without arguments.");
      return counter.at++ == 0 ? Value::text("") : counter.items[0];
    }
    case Kind::kUndefined:
      return machine_.undefined_error(callee);
    default:
      return machine_.error("a value of type %s cannot be called.", callee.type_name());
  }
}

// `chain_input` is what a filter chain without an operand (a filter block) works on.
Result<Value> Interpreter::evaluate_filter(const Node& at, const Value* chain_input) {
  const Level level(*this);
  DP_CHECK(enter(at));
  Value operand;
  if (at.a == kNoNode) {
    if (chain_input) operand = *chain_input;
  } else if (chain_input && node(at.a).kind == NodeKind::kFilter) {
    DP_TRY(operand, evaluate_filter(node(at.a), chain_input));
  } else {
    DP_TRY(operand, evaluate(at.a));
  }
  DP_TRY(const Arguments arguments, evaluate_arguments(program_.calls[at.b]));
  machine_.set_line(at.line);
  const auto& [name, filter] = program_.filters[at.c];
  if (!filter) return machine_.error("there is no filter '%s'.", printable(name).c_str());
  return filter(machine_, operand, arguments);
}

Result<Value> Interpreter::evaluate_test(const Node& at) {
  DP_TRY(const Value operand, evaluate(at.a));
  DP_TRY(const Arguments arguments, evaluate_arguments(program_.calls[at.b]));
  machine_.set_line(at.line);
  const auto& [name, test] = program_.tests[at.c];
  if (!test) return machine_.error("there is no test '%s'.", printable(name).c_str());
  DP_TRY(const bool holds, test(machine_, operand, arguments));
  return Value::boolean(holds != (at.op == 1));
}

}  // namespace doppler::tmpl
