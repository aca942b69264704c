// Expressions, from the loosest operator to the tightest. See parser.h.
#include "tokenizer/template/limits.h"
#include "tokenizer/template/parser.h"

namespace doppler::tmpl {

// a, b, c without brackets; a single expression without a comma.
Result<NodeId> Parser::tuple_or_expression(bool with_condition) {
  const uint32_t at = line();
  DP_TRY(const NodeId first, expression(with_condition));
  if (!is_operator(",")) return first;
  std::vector<NodeId> parts = {first};
  while (skip_operator(",")) {
    const TokenKind kind = token().kind;
    if (kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd || is_operator(")")) break;
    DP_TRY(const NodeId part, expression(with_condition));
    parts.push_back(part);
  }
  return add({.kind = NodeKind::kTuple, .line = at}, parts);
}

Result<NodeId> Parser::expression(bool with_condition) {
  if (++depth_ > kMaxNesting) return syntax_error(line(), "it is nested deeper than %d levels.", kMaxNesting);
  auto node = with_condition ? condition() : or_expression();
  --depth_;
  return node;
}

Result<NodeId> Parser::condition() {
  const uint32_t at = line();
  DP_TRY(NodeId node, or_expression());
  while (skip_name("if")) {
    DP_TRY(const NodeId test, or_expression());
    NodeId otherwise = kNoNode;
    if (skip_name("else")) {
      DP_TRY(otherwise, expression());
    }
    DP_TRY(node, add({.kind = NodeKind::kCondition, .line = at, .a = node, .b = test, .c = otherwise}));
  }
  return node;
}

Result<NodeId> Parser::or_expression() {
  const uint32_t at = line();
  DP_TRY(NodeId left, and_expression());
  while (skip_name("or")) {
    DP_TRY(const NodeId right, and_expression());
    DP_TRY(left, add({.kind = NodeKind::kOr, .line = at, .a = left, .b = right}));
  }
  return left;
}

Result<NodeId> Parser::and_expression() {
  const uint32_t at = line();
  DP_TRY(NodeId left, not_expression());
  while (skip_name("and")) {
    DP_TRY(const NodeId right, not_expression());
    DP_TRY(left, add({.kind = NodeKind::kAnd, .line = at, .a = left, .b = right}));
  }
  return left;
}

Result<NodeId> Parser::not_expression() {
  const uint32_t at = line();
  if (!skip_name("not")) return comparison();
  if (++depth_ > kMaxNesting) return syntax_error(at, "it is nested deeper than %d levels.", kMaxNesting);
  DP_TRY(const NodeId operand, not_expression());
  --depth_;
  return add({.kind = NodeKind::kNot, .line = at, .a = operand});
}

Result<NodeId> Parser::comparison() {
  static constexpr std::pair<std::string_view, Comparison> kSymbols[] = {
      {"==", Comparison::kEq}, {"!=", Comparison::kNe}, {"<", Comparison::kLt},
      {"<=", Comparison::kLe}, {">", Comparison::kGt},  {">=", Comparison::kGe}};
  const uint32_t at = line();
  DP_TRY(const NodeId first, sum());
  std::vector<NodeId> parts = {first};
  for (;;) {
    std::optional<Comparison> op;
    for (const auto& [text, symbol] : kSymbols) {
      if (!op && skip_operator(text)) op = symbol;
    }
    if (!op && skip_name("in")) op = Comparison::kIn;
    if (!op && is_name("not") && next_token().kind == TokenKind::kName && next_token().text == "in") {
      at_ += 2;
      op = Comparison::kNotIn;
    }
    if (!op) break;
    DP_TRY(const NodeId right, sum());
    parts.push_back(static_cast<NodeId>(*op));
    parts.push_back(right);
  }
  if (parts.size() == 1) return first;
  return add({.kind = NodeKind::kCompare, .line = at}, parts);
}

Result<NodeId> Parser::sum() {
  const uint32_t at = line();
  DP_TRY(NodeId left, concatenation());
  while (is_operator("+") || is_operator("-")) {
    const Operator op = is_operator("+") ? Operator::kAdd : Operator::kSub;
    ++at_;
    DP_TRY(const NodeId right, concatenation());
    DP_TRY(left, add({.kind = NodeKind::kArithmetic,
                      .op = static_cast<uint8_t>(op),
                      .line = at,
                      .a = left,
                      .b = right}));
  }
  return left;
}

Result<NodeId> Parser::concatenation() {
  const uint32_t at = line();
  DP_TRY(const NodeId first, product());
  if (!is_operator("~")) return first;
  std::vector<NodeId> parts = {first};
  while (skip_operator("~")) {
    DP_TRY(const NodeId part, product());
    parts.push_back(part);
  }
  return add({.kind = NodeKind::kConcat, .line = at}, parts);
}

Result<NodeId> Parser::product() {
  static constexpr std::pair<std::string_view, Operator> kSymbols[] = {
      {"*", Operator::kMul}, {"/", Operator::kDiv}, {"//", Operator::kFloorDiv}, {"%", Operator::kMod}};
  const uint32_t at = line();
  DP_TRY(NodeId left, power());
  for (;;) {
    std::optional<Operator> op;
    for (const auto& [text, symbol] : kSymbols) {
      if (!op && skip_operator(text)) op = symbol;
    }
    if (!op) return left;
    DP_TRY(const NodeId right, power());
    DP_TRY(left, add({.kind = NodeKind::kArithmetic,
                      .op = static_cast<uint8_t>(*op),
                      .line = at,
                      .a = left,
                      .b = right}));
  }
}

Result<NodeId> Parser::power() {
  const uint32_t at = line();
  DP_TRY(NodeId left, unary(true));
  while (skip_operator("**")) {
    DP_TRY(const NodeId right, unary(true));
    DP_TRY(left, add({.kind = NodeKind::kArithmetic,
                      .op = static_cast<uint8_t>(Operator::kPow),
                      .line = at,
                      .a = left,
                      .b = right}));
  }
  return left;
}

Result<NodeId> Parser::unary(bool with_filters) {
  const uint32_t at = line();
  NodeId node = kNoNode;
  if (is_operator("-") || is_operator("+")) {
    const Operator op = is_operator("-") ? Operator::kNeg : Operator::kPos;
    ++at_;
    if (++depth_ > kMaxNesting) return syntax_error(at, "it is nested deeper than %d levels.", kMaxNesting);
    DP_TRY(const NodeId operand, unary(false));
    --depth_;
    DP_TRY(node,
           add({.kind = NodeKind::kArithmetic, .op = static_cast<uint8_t>(op), .line = at, .a = operand}));
  } else {
    DP_TRY(node, primary());
  }
  DP_TRY(node, postfix(node));
  if (!with_filters) return node;
  return filters_and_tests(node);
}

Result<NodeId> Parser::primary() {
  const Token& current = token();
  const uint32_t at = current.line;
  switch (current.kind) {
    case TokenKind::kName: {
      ++at_;
      const std::string& name = current.text;
      if (name == "true" || name == "True") return add_constant(at, Value::boolean(true));
      if (name == "false" || name == "False") return add_constant(at, Value::boolean(false));
      if (name == "none" || name == "None") return add_constant(at, Value::none());
      return add({.kind = NodeKind::kName, .line = at, .a = intern(name)});
    }
    case TokenKind::kString: {
      std::string text;
      for (; token().kind == TokenKind::kString; ++at_) text += token().text;
      return add_constant(at, Value::text(std::move(text)));
    }
    case TokenKind::kInteger: {
      const auto number = parse_int(current.text);
      if (!number)
        return syntax_error(at, "integer %s does not fit 64 bits.", printable(current.text, 40).c_str());
      ++at_;
      return add_constant(at, Value::integer(*number));
    }
    case TokenKind::kFloat: {
      const auto number = parse_double(current.text);
      if (!number) return syntax_error(at, "'%s' is not a number.", printable(current.text, 40).c_str());
      ++at_;
      return add_constant(at, Value::number(*number));
    }
    default:
      if (is_operator("(")) return parenthesized();
      if (is_operator("[")) return list_literal();
      if (is_operator("{")) return dict_literal();
      return unexpected_token("an expression");
  }
}

Result<NodeId> Parser::parenthesized() {
  const uint32_t at = line();
  ++at_;
  if (skip_operator(")")) return add({.kind = NodeKind::kTuple, .line = at});
  DP_TRY(const NodeId inner, tuple_or_expression(true));
  DP_CHECK(expect_operator(")"));
  return inner;
}

Result<NodeId> Parser::list_literal() {
  const uint32_t at = line();
  ++at_;
  std::vector<NodeId> items;
  while (!is_operator("]")) {
    if (!items.empty()) DP_CHECK(expect_operator(","));
    if (is_operator("]")) break;
    DP_TRY(const NodeId item, expression());
    items.push_back(item);
  }
  ++at_;
  return add({.kind = NodeKind::kList, .line = at}, items);
}

Result<NodeId> Parser::dict_literal() {
  const uint32_t at = line();
  ++at_;
  std::vector<NodeId> items;
  while (!is_operator("}")) {
    if (!items.empty()) DP_CHECK(expect_operator(","));
    if (is_operator("}")) break;
    DP_TRY(const NodeId key, expression());
    DP_CHECK(expect_operator(":"));
    DP_TRY(const NodeId value, expression());
    items.push_back(key);
    items.push_back(value);
  }
  ++at_;
  return add({.kind = NodeKind::kDict, .line = at}, items);
}

Result<NodeId> Parser::postfix(NodeId operand) {
  for (;;) {
    const uint32_t at = line();
    if (skip_operator(".")) {
      if (token().kind == TokenKind::kInteger) {
        DP_TRY(const NodeId key, primary());
        DP_TRY(operand, add({.kind = NodeKind::kItem, .line = at, .a = operand, .b = key}));
        continue;
      }
      DP_TRY(const std::string name, expect_any_name());
      DP_TRY(operand, add({.kind = NodeKind::kAttribute, .line = at, .a = operand, .b = intern(name)}));
    } else if (skip_operator("[")) {
      DP_TRY(operand, subscript(operand));
    } else if (is_operator("(")) {
      DP_TRY(const uint32_t call, call_arguments());
      DP_TRY(operand, add({.kind = NodeKind::kCall, .line = at, .a = operand, .b = call}));
    } else {
      return operand;
    }
  }
}

Result<NodeId> Parser::subscript(NodeId operand) {
  const uint32_t at = line();
  NodeId bounds[3] = {kNoNode, kNoNode, kNoNode};
  size_t colons = 0;
  for (;;) {
    if (is_operator("]")) break;
    if (skip_operator(":")) {
      if (++colons > 2) return syntax_error(at, "a slice has more than three parts.");
      continue;
    }
    if (bounds[colons] != kNoNode) return unexpected_token("']'");
    DP_TRY(bounds[colons], expression());
  }
  ++at_;
  if (colons > 0) return add({.kind = NodeKind::kSlice, .line = at, .a = operand}, bounds);
  if (bounds[0] == kNoNode) return syntax_error(at, "an index is missing between '[' and ']'.");
  return add({.kind = NodeKind::kItem, .line = at, .a = operand, .b = bounds[0]});
}

Result<NodeId> Parser::filters_and_tests(NodeId operand) {
  for (;;) {
    const uint32_t at = line();
    if (skip_operator("|")) {
      DP_TRY(operand, filter_chain(operand));
    } else if (skip_name("is")) {
      DP_TRY(operand, test(operand));
    } else if (is_operator("(")) {  // the result of a filter or test is called
      DP_TRY(const uint32_t call, call_arguments());
      DP_TRY(operand, add({.kind = NodeKind::kCall, .line = at, .a = operand, .b = call}));
    } else {
      return operand;
    }
  }
}

Result<NodeId> Parser::filter_chain(NodeId operand) {
  do {
    const uint32_t at = line();
    DP_TRY(std::string name, expect_any_name());
    while (skip_operator(".")) {
      DP_TRY(const std::string part, expect_any_name());
      name += "." + part;
    }
    program_.calls.emplace_back();
    auto call = static_cast<uint32_t>(program_.calls.size() - 1);
    if (is_operator("(")) {
      DP_TRY(call, call_arguments());
    }
    program_.filters.push_back({name, find_filter(name)});
    DP_TRY(operand, add({.kind = NodeKind::kFilter,
                         .line = at,
                         .a = operand,
                         .b = call,
                         .c = static_cast<uint32_t>(program_.filters.size() - 1)}));
  } while (skip_operator("|"));
  return operand;
}

Result<NodeId> Parser::test(NodeId operand) {
  const uint32_t at = line();
  const bool negated = skip_name("not");
  DP_TRY(const std::string name, expect_any_name());
  program_.calls.emplace_back();
  auto call = static_cast<uint32_t>(program_.calls.size() - 1);
  const TokenKind kind = token().kind;
  const bool literal = kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat;
  const bool word = kind == TokenKind::kName && !is_name("else") && !is_name("or") && !is_name("and");
  if (is_operator("(")) {
    DP_TRY(call, call_arguments());
  } else if (literal || word || is_operator("[") || is_operator("{")) {  // one argument without brackets
    if (is_name("is")) return syntax_error(at, "tests cannot be chained with 'is'.");
    DP_TRY(NodeId argument, primary());
    DP_TRY(argument, postfix(argument));
    program_.calls[call].positional.push_back(argument);
  }
  program_.tests.push_back({name, find_test(name)});
  return add({.kind = NodeKind::kTest,
              .op = static_cast<uint8_t>(negated ? 1 : 0),
              .line = at,
              .a = operand,
              .b = call,
              .c = static_cast<uint32_t>(program_.tests.size() - 1)});
}

Result<uint32_t> Parser::call_arguments() {
  ++at_;
  CallSpec call;
  bool first = true;
  while (!is_operator(")")) {
    if (!first) DP_CHECK(expect_operator(","));
    first = false;
    if (is_operator(")")) break;
    if (skip_operator("**")) {
      DP_TRY(call.double_star, expression());
    } else if (skip_operator("*")) {
      DP_TRY(call.star, expression());
    } else if (token().kind == TokenKind::kName && next_token().kind == TokenKind::kOperator &&
               next_token().text == "=") {
      std::string name = token().text;
      at_ += 2;
      DP_TRY(const NodeId value, expression());
      call.named.emplace_back(std::move(name), value);
    } else {
      if (!call.named.empty()) return syntax_error(line(), "an argument without a name follows a named one.");
      DP_TRY(const NodeId value, expression());
      call.positional.push_back(value);
    }
  }
  ++at_;
  program_.calls.push_back(std::move(call));
  return static_cast<uint32_t>(program_.calls.size() - 1);
}

}  // namespace doppler::tmpl
