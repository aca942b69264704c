// Tokens -> syntax tree. The grammar and the precedence of operators are jinja2's; depth and size are bounded
// here, so the interpreter can recurse over the tree.
#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string_view>

#include "tokenizer/template/ast.h"
#include "tokenizer/template/lexer.h"

namespace doppler::tmpl {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Result<Program> run();

 private:
  using Words = std::initializer_list<std::string_view>;

  // Tokens.
  const Token& token() const { return tokens_[at_]; }
  const Token& next_token() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  uint32_t line() const { return token().line; }
  bool is(TokenKind kind, std::string_view text) const {
    return token().kind == kind && token().text == text;
  }
  bool is_operator(std::string_view text) const { return is(TokenKind::kOperator, text); }
  bool is_name(std::string_view text) const { return is(TokenKind::kName, text); }
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  Result<void> expect_operator(std::string_view text);
  Result<void> expect_block_end();
  Result<std::string> expect_any_name();
  Unexpected unexpected_token(const char* wanted) const;

  // The tree.
  Result<NodeId> add(Node node, std::span<const NodeId> children = {});
  Result<NodeId> add_constant(uint32_t line, Value value);
  uint32_t intern(std::string_view name);

  // parser.cpp: statements.
  Result<NodeId> body(Words ends,
                      uint32_t opening_line);  // up to a block whose first name is in `ends`; at that name
  Result<NodeId> statement();
  Result<NodeId> for_statement();
  Result<NodeId> if_statement();
  Result<NodeId> set_statement();
  Result<NodeId> macro_statement();
  Result<NodeId> call_statement();
  Result<NodeId> filter_statement();
  Result<NodeId> scope_statement(bool is_with);
  Result<void> parameters(MacroSpec& macro);
  void note_extras(MacroSpec& macro, size_t first_node);
  Result<NodeId> end_body(std::string_view end, uint32_t opening_line);  // the body, its end tag consumed
  Result<NodeId> target(bool allow_namespace);
  Result<NodeId> single_target(bool allow_namespace);

  // parser_expressions.cpp, loosest first.
  Result<NodeId> tuple_or_expression(bool with_condition);
  Result<NodeId> expression(bool with_condition = true);
  Result<NodeId> condition();
  Result<NodeId> or_expression();
  Result<NodeId> and_expression();
  Result<NodeId> not_expression();
  Result<NodeId> comparison();
  Result<NodeId> sum();
  Result<NodeId> concatenation();
  Result<NodeId> product();
  Result<NodeId> power();
  Result<NodeId> unary(bool with_filters);
  Result<NodeId> primary();
  Result<NodeId> parenthesized();
  Result<NodeId> list_literal();
  Result<NodeId> dict_literal();
  Result<NodeId> postfix(NodeId operand);
  Result<NodeId> subscript(NodeId operand);
  Result<NodeId> filters_and_tests(NodeId operand);
  Result<NodeId> filter_chain(NodeId operand);  // at the first filter's name
  Result<NodeId> test(NodeId operand);
  Result<uint32_t> call_arguments();  // an index of calls; at the opening parenthesis

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int loop_depth_ = 0;
  std::map<std::string, uint32_t, std::less<>> name_ids_;
  Program program_;
};

}  // namespace doppler::tmpl
