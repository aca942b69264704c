// Statements, and the bookkeeping of the tree. Expressions are in parser_expressions.cpp.
#include "tokenizer/template/parser.h"

#include <algorithm>

#include "tokenizer/template/limits.h"

namespace doppler::tmpl {

Result<Program> Parser::run() {
  DP_TRY(program_.root, body({}, 1));
  return std::move(program_);
}

bool Parser::skip_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  ++at_;
  return true;
}

bool Parser::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  ++at_;
  return true;
}

Unexpected Parser::unexpected_token(const char* wanted) const {
  return syntax_error(line(), "unexpected '%s', expected %s.", printable(token().text, 40).c_str(), wanted);
}

Result<void> Parser::expect_operator(std::string_view text) {
  if (!skip_operator(text)) return unexpected_token(("'" + std::string(text) + "'").c_str());
  return {};
}

Result<void> Parser::expect_block_end() {
  if (token().kind != TokenKind::kBlockEnd) return unexpected_token("the end of the statement");
  ++at_;
  return {};
}

Result<std::string> Parser::expect_any_name() {
  if (token().kind != TokenKind::kName) return unexpected_token("a name");
  return tokens_[at_++].text;
}

Result<NodeId> Parser::add(Node node, std::span<const NodeId> children) {
  if (program_.nodes.size() >= kMaxNodes) {
    return syntax_error(node.line, "the template has more than the allowed %u parts.", kMaxNodes);
  }
  node.list = static_cast<uint32_t>(program_.children.size());
  node.list_count = static_cast<uint32_t>(children.size());
  program_.children.insert(program_.children.end(), children.begin(), children.end());
  program_.nodes.push_back(node);
  return static_cast<NodeId>(program_.nodes.size() - 1);
}

Result<NodeId> Parser::add_constant(uint32_t line, Value value) {
  program_.constants.push_back(std::move(value));
  return add(
      {.kind = NodeKind::kConst, .line = line, .a = static_cast<uint32_t>(program_.constants.size() - 1)});
}

uint32_t Parser::intern(std::string_view name) {
  if (const auto it = name_ids_.find(name); it != name_ids_.end()) return it->second;
  const auto id = static_cast<uint32_t>(program_.names.size());
  program_.names.emplace_back(name);
  name_ids_.emplace(name, id);
  return id;
}

Result<NodeId> Parser::body(Words ends, uint32_t opening_line) {
  if (++depth_ > kMaxNesting) return syntax_error(line(), "it is nested deeper than %d levels.", kMaxNesting);
  const uint32_t first_line = line();
  std::vector<NodeId> statements;
  for (;;) {
    const Token& current = token();
    if (current.kind == TokenKind::kEnd) {
      if (ends.size() == 0) break;
      return syntax_error(opening_line, "the statement that starts here has no '%s'.",
                          std::string(*(ends.end() - 1)).c_str());
    }
    NodeId node = kNoNode;
    ++at_;
    if (current.kind == TokenKind::kData) {
      program_.constants.push_back(Value::text(current.text));
      DP_TRY(node, add({.kind = NodeKind::kText,
                        .line = current.line,
                        .a = static_cast<uint32_t>(program_.constants.size() - 1)}));
    } else if (current.kind == TokenKind::kVariableBegin) {
      DP_TRY(const NodeId value, tuple_or_expression(true));
      if (token().kind != TokenKind::kVariableEnd) return unexpected_token("the end of the expression '}}'");
      ++at_;
      DP_TRY(node, add({.kind = NodeKind::kOutput, .line = current.line, .a = value}));
    } else {
      if (token().kind != TokenKind::kName) return unexpected_token("the name of a statement");
      if (std::find(ends.begin(), ends.end(), token().text) != ends.end()) break;
      DP_TRY(node, statement());
      DP_CHECK(expect_block_end());
    }
    statements.push_back(node);
  }
  --depth_;
  return add({.kind = NodeKind::kBlock, .line = first_line}, statements);
}

Result<NodeId> Parser::end_body(std::string_view end, uint32_t opening_line) {
  DP_CHECK(expect_block_end());
  DP_TRY(const NodeId node, body({end}, opening_line));
  ++at_;  // the name that ended it
  return node;
}

// Leaves the parser at the closing %}, as each of the functions below does.
Result<NodeId> Parser::statement() {
  const uint32_t at = line();
  const std::string name = token().text;
  ++at_;
  if (name == "for") return for_statement();
  if (name == "if") return if_statement();
  if (name == "set") return set_statement();
  if (name == "macro") return macro_statement();
  if (name == "call") return call_statement();
  if (name == "filter") return filter_statement();
  if (name == "with") return scope_statement(true);
  if (name == "generation") return scope_statement(false);
  if (name == "break" || name == "continue") {
    if (loop_depth_ == 0) return syntax_error(at, "'%s' is not within a for loop.", name.c_str());
    return add({.kind = name == "break" ? NodeKind::kBreak : NodeKind::kContinue, .line = at});
  }
  for (const std::string_view other :
       {"block", "extends", "include", "import", "from", "do", "autoescape", "trans"}) {
    if (name == other)
      return syntax_error(at, "statement '%s' is not supported in chat templates.", name.c_str());
  }
  return syntax_error(at, "unknown or misplaced statement '%s'.", printable(name).c_str());
}

Result<NodeId> Parser::for_statement() {
  const uint32_t at = line();
  LoopSpec loop{};
  DP_TRY(loop.target, target(false));
  if (!skip_name("in")) return unexpected_token("'in'");
  DP_TRY(loop.iterable, tuple_or_expression(false));
  loop.condition = kNoNode;
  if (skip_name("if")) {
    DP_TRY(loop.condition, expression());
  }
  loop.is_recursive = skip_name("recursive");
  DP_CHECK(expect_block_end());
  ++loop_depth_;
  DP_TRY(loop.body, body({"else", "endfor"}, at));
  --loop_depth_;
  loop.otherwise = kNoNode;
  if (skip_name("else")) {
    DP_TRY(loop.otherwise, end_body("endfor", at));
  } else {
    ++at_;
  }
  program_.loops.push_back(loop);
  return add({.kind = NodeKind::kFor, .line = at, .a = static_cast<uint32_t>(program_.loops.size() - 1)});
}

Result<NodeId> Parser::if_statement() {
  const uint32_t at = line();
  std::vector<NodeId> branches;
  NodeId otherwise = kNoNode;
  for (;;) {
    DP_TRY(const NodeId test, tuple_or_expression(false));
    DP_CHECK(expect_block_end());
    DP_TRY(const NodeId then, body({"elif", "else", "endif"}, at));
    branches.push_back(test);
    branches.push_back(then);
    if (skip_name("elif")) continue;
    if (skip_name("else")) {
      DP_TRY(otherwise, end_body("endif", at));
    } else {
      ++at_;
    }
    return add({.kind = NodeKind::kIf, .line = at, .a = otherwise}, branches);
  }
}

Result<NodeId> Parser::single_target(bool allow_namespace) {
  const uint32_t at = line();
  if (skip_operator("(")) {
    DP_TRY(const NodeId inner, target(false));
    DP_CHECK(expect_operator(")"));
    return inner;
  }
  DP_TRY(const std::string name, expect_any_name());
  for (const std::string_view word : {"true", "false", "none", "True", "False", "None"}) {
    if (name == word) return syntax_error(at, "'%s' cannot be assigned to.", name.c_str());
  }
  if (allow_namespace && skip_operator(".")) {
    DP_TRY(const std::string attribute, expect_any_name());
    return add({.kind = NodeKind::kNamespaceRef, .line = at, .a = intern(name), .b = intern(attribute)});
  }
  return add({.kind = NodeKind::kName, .line = at, .a = intern(name)});
}

Result<NodeId> Parser::target(bool allow_namespace) {
  if (++depth_ > kMaxNesting) return syntax_error(line(), "it is nested deeper than %d levels.", kMaxNesting);
  const uint32_t at = line();
  DP_TRY(const NodeId first, single_target(allow_namespace));
  --depth_;
  if (!is_operator(",")) return first;
  std::vector<NodeId> parts = {first};
  while (skip_operator(",")) {
    if (token().kind != TokenKind::kName && !is_operator("(")) break;
    if (is_name("in")) break;
    DP_TRY(const NodeId part, single_target(allow_namespace));
    parts.push_back(part);
  }
  return add({.kind = NodeKind::kTuple, .line = at}, parts);
}

Result<NodeId> Parser::set_statement() {
  const uint32_t at = line();
  DP_TRY(const NodeId to, target(true));
  if (skip_operator("=")) {
    DP_TRY(const NodeId value, tuple_or_expression(true));
    return add({.kind = NodeKind::kSet, .line = at, .a = to, .b = value});
  }
  NodeId chain = kNoNode;
  if (skip_operator("|")) {
    DP_TRY(chain, filter_chain(kNoNode));
  }
  DP_TRY(const NodeId inner, end_body("endset", at));
  return add({.kind = NodeKind::kSetBlock, .line = at, .a = to, .b = inner, .c = chain});
}

Result<void> Parser::parameters(MacroSpec& macro) {
  DP_CHECK(expect_operator("("));
  while (!is_operator(")")) {
    if (!macro.parameters.empty()) DP_CHECK(expect_operator(","));
    if (is_operator(")")) break;
    DP_TRY(const std::string name, expect_any_name());
    macro.parameters.push_back(intern(name));
    if (skip_operator("=")) {
      DP_TRY(const NodeId value, expression());
      macro.defaults.push_back(value);
    } else if (!macro.defaults.empty()) {
      return syntax_error(line(), "a parameter without a default follows one with a default.");
    }
  }
  ++at_;
  return {};
}

// A body that reads these names takes more than the parameters.
void Parser::note_extras(MacroSpec& macro, size_t first_node) {
  for (size_t i = first_node; i < program_.nodes.size(); ++i) {
    const Node& node = program_.nodes[i];
    if (node.kind != NodeKind::kName || std::ranges::find(macro.parameters, node.a) != macro.parameters.end())
      continue;
    if (program_.names[node.a] == "varargs") macro.varargs = node.a;
    if (program_.names[node.a] == "kwargs") macro.kwargs = node.a;
  }
}

Result<NodeId> Parser::macro_statement() {
  const uint32_t at = line();
  MacroSpec macro;
  DP_TRY(macro.name, expect_any_name());
  intern(macro.name);
  DP_CHECK(parameters(macro));
  const int outer_loops = std::exchange(loop_depth_, 0);
  const size_t first = program_.nodes.size();
  DP_TRY(macro.body, end_body("endmacro", at));
  note_extras(macro, first);
  loop_depth_ = outer_loops;
  if (token().kind == TokenKind::kName) ++at_;  // {% endmacro name %}
  program_.macros.push_back(std::move(macro));
  return add({.kind = NodeKind::kMacro, .line = at, .a = static_cast<uint32_t>(program_.macros.size() - 1)});
}

Result<NodeId> Parser::call_statement() {
  const uint32_t at = line();
  MacroSpec caller;
  caller.name = "caller";
  if (is_operator("(")) DP_CHECK(parameters(caller));
  DP_TRY(const NodeId call, expression());
  if (program_.nodes[call].kind != NodeKind::kCall) return syntax_error(at, "a call block needs a call.");
  const int outer_loops = std::exchange(loop_depth_, 0);
  const size_t first = program_.nodes.size();
  DP_TRY(caller.body, end_body("endcall", at));
  note_extras(caller, first);
  loop_depth_ = outer_loops;
  program_.macros.push_back(std::move(caller));
  return add({.kind = NodeKind::kCallBlock,
              .line = at,
              .a = static_cast<uint32_t>(program_.macros.size() - 1),
              .b = call});
}

Result<NodeId> Parser::filter_statement() {
  const uint32_t at = line();
  DP_TRY(const NodeId chain, filter_chain(kNoNode));
  DP_TRY(const NodeId inner, end_body("endfilter", at));
  return add({.kind = NodeKind::kFilterBlock, .line = at, .a = chain, .b = inner});
}

Result<NodeId> Parser::scope_statement(bool is_with) {
  const uint32_t at = line();
  std::vector<NodeId> assignments;
  while (is_with && token().kind != TokenKind::kBlockEnd) {
    if (!assignments.empty()) DP_CHECK(expect_operator(","));
    DP_TRY(const NodeId to, single_target(false));
    DP_CHECK(expect_operator("="));
    DP_TRY(const NodeId value, expression());
    assignments.push_back(to);
    assignments.push_back(value);
  }
  DP_TRY(const NodeId inner, end_body(is_with ? "endwith" : "endgeneration", at));
  return add({.kind = NodeKind::kScope, .line = at, .a = inner}, assignments);
}

}  // namespace doppler::tmpl
