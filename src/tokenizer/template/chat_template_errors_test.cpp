// Tests the limits of a chat template: every bound of limits.h, and error sentences that name the line and the cause.
// chat_template_test.cpp tests right results.
#include <gtest/gtest.h>

#include "tokenizer/template/chat_template.h"
#include "tokenizer/template/limits.h"
#include "tokenizer/template/render_input.h"

namespace doppler::tmpl {
namespace {

std::string failure_of(const std::string& source, const RenderInput& input = {}) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed) return parsed.error().message();
  const Result<std::string> text = parsed->render(input);
  return text ? "no error: " + text->substr(0, 100) : text.error().message();
}

std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

struct Row {
  std::string source;
  std::string sentence;  // a part of the sentence
};

TEST(ChatTemplateErrors, SyntaxErrorsNameTheLine) {
  const Row rows[] = {
      {"a\nb\n{{ 1 + }}", "Line 3 of the chat template: unexpected '}}', expected an expression."},
      {"{% for x in y %}\n\n",
       "Line 1 of the chat template: the statement that starts here has no 'endfor'."},
      {"\n{% nonsense %}", "Line 2 of the chat template: unknown or misplaced statement 'nonsense'."},
      {"{% include 'x' %}", "statement 'include' is not supported in chat templates."},
      {"{{ 'abc }}", "the text that starts here has no closing quote."},
      {"\n\n{{ x", "Line 3 of the chat template: the tag that starts here is not closed by '}}'."},
      {"{# x", "the comment that starts here has no end."},
      {"{% raw %}", "the raw block that starts here has no endraw."},
      {"{{ (1] }}", "unexpected ']', expected ')'."},
      {"{{ 99999999999999999999 }}", "integer 99999999999999999999 does not fit 64 bits."},
      {"{% break %}", "'break' is not within a for loop."},
      {"{{ a ? b }}", "unexpected character '?'."},
      {std::string("{{ \x01 }}"), "unexpected character '\\x01'."},
  };
  for (const Row& row : rows)
    EXPECT_NE(failure_of(row.source).find(row.sentence), std::string::npos) << row.source << "\n"
                                                                            << failure_of(row.source);
}

TEST(ChatTemplateErrors, RuntimeErrorsNameTheLineAndTheValue) {
  const Row rows[] = {
      {"\n{{ foo.bar }}", "Line 2 of the chat template: 'foo' is undefined."},
      {"{{ messages[0].x.y }}", "'list object' has no element 0."},
      {"{% set a = {} %}\n{{ a.x.y }}", "Line 2 of the chat template: 'dict object' has no attribute 'x'."},
      {"{{ raise_exception('roles\nmust alternate') }}",
       "it refuses this conversation: roles\\x0amust alternate"},
      {"{{ 1 + 'a' }}", "operator + cannot take int and str."},
      {"{{ 1|nope }}", "there is no filter 'nope'."},
      {"{{ 1 is nope }}", "there is no test 'nope'."},
      {"{{ [].append(1) }}", "list.append() would change a value, which a chat template may not do."},
      {"{{ 'a'|replace('b') }}", "filter replace needs argument 'new'."},
      {"{{ 'a'|trim(x=1) }}", "filter trim has no argument 'x'."},
      {"{{ 1|tojson(1, 2, 3, 4, 5) }}", "filter tojson takes at most 4 arguments, not 5."},
      {"{% set messages.x = 1 %}", "only a namespace's attributes can be set."},
  };
  for (const Row& row : rows)
    EXPECT_NE(failure_of(row.source).find(row.sentence), std::string::npos) << row.source << "\n"
                                                                            << failure_of(row.source);
}

TEST(ChatTemplateErrors, GrowthIsBounded) {
  const std::string hundred_k = "range(100000)";
  const Row rows[] = {
      {repeated("{{ '", 1) + std::string(kMaxTemplateBytes, 'x') + "' }}",
       "bytes, more than the allowed 1048576."},
      {"{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "nested deeper than 150 levels."},
      {"{{ " + repeated("[", 5000) + "1" + repeated("]", 5000) + " }}", "nested deeper than 150 levels."},
      {"{{ " + repeated("-", 5000) + "1 }}", "nested deeper than 150 levels."},
      {"{{ " + repeated("not ", 5000) + "1 }}", "nested deeper than 150 levels."},
      {"{{ 1" + repeated(" if 1 else 1", 5000) + " }}", "nested deeper than 150 levels."},
      {"{{ 1" + repeated("+1", 5000) + " }}", "evaluation is nested deeper than 600 levels."},
      {"{{ x" + repeated("|list", 5000) + " }}", "evaluation is nested deeper than 600 levels."},
      {repeated("{% if 1 %}", 5000) + repeated("{% endif %}", 5000), "nested deeper than 150 levels."},
      {"{% for " + repeated("(", 5000) + "x" + repeated(")", 5000) + " in y %}",
       "nested deeper than 150 levels."},
      {repeated("{{1}}", 140000), "more than the allowed 262144 parts."},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "evaluation is nested deeper than 600 levels."},
      {"{% for a in " + hundred_k + " %}{% for b in " + hundred_k + " %}{% endfor %}{% endfor %}",
       "rendering takes more than the allowed 5000000 steps."},
      {"{{ range(1000000) }}", "range() is longer than the allowed 100000."},
      {"{{ range(-9223372036854775807, 9223372036854775807) }}",
       "range() is longer than the allowed 100000."},
      {"{{ 'x' * 9223372036854775807 }}", "builds more than the allowed 256.0 MiB"},
      {"{{ [1, 2] * 4611686018427387904 }}", "builds more than the allowed 256.0 MiB"},
      {"{% set x = 'x' * 50000000 %}{{ x }}{{ x }}", "the output is larger than the allowed 64.0 MiB."},
      {"{% set n = namespace(x='ab') %}{% for i in range(100) %}{% set n.x = n.x + n.x %}{% endfor %}",
       "builds more than the allowed 256.0 MiB"},
      {"{% set n = namespace(x='ab') %}{% for i in range(100) %}{% set n.x = n.x|replace('', n.x) %}{% "
       "endfor %}",
       "more than the allowed"},
      {"{% set n = namespace(x=[]) %}{% for i in range(1000) %}{% set n.x = [n.x] %}{% endfor %}",
       "a list is nested deeper than 100 levels."},
      {"{% set n = namespace(x=1) %}{% for i in range(90) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
       "steps."},
      {"{% set n = namespace(x=1, y=1) %}{% for i in range(90) %}{% set n.x = [n.x, n.x] %}{% set n.y = "
       "[n.y, n.y] %}"
       "{% endfor %}{{ n.x == n.y }}",
       "steps."},
      {"{% set n = namespace(x=1) %}{% for i in range(90) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ "
       "n.x|tojson }}",
       "steps."},
      {"{{ 9223372036854775807 + 1 }}", "the result of operator + does not fit 64 bits."},
      {"{{ -9223372036854775807 - 2 }}", "the result of operator - does not fit 64 bits."},
      {"{{ 3037000500 * 3037000500 }}", "the result of operator * does not fit 64 bits."},
      {"{{ 10 ** 19 }}", "the result of operator ** does not fit 64 bits."},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "does not fit 64 bits."},
      {"{{ 1e300|int }}", "does not fit 64 bits."},
      {"{{ '%9999d' % 1 }}", "a format width is larger than the allowed 1000."},
      {"{{ 'a'|indent(100000) }}", "is too large."},
  };
  for (const Row& row : rows) {
    const std::string failure = failure_of(row.source);
    EXPECT_NE(failure.find(row.sentence), std::string::npos) << row.source.substr(0, 200) << "\n" << failure;
    EXPECT_LT(failure.size(), 200u);
  }
}

TEST(ChatTemplateErrors, InputIsBounded) {
  RenderInput deep;
  deep.messages = Json(1);
  for (int i = 0; i < 200; ++i) deep.messages = Json::array({std::move(deep.messages)});
  EXPECT_EQ(failure_of("{{ messages }}", deep), "The conversation is nested deeper than 100 levels.");
  RenderInput large;
  large.extra["x"] = UINT64_MAX;
  EXPECT_EQ(failure_of("{{ x }}", large),
            "Integer 18446744073709551615 in the conversation is larger than 2^63 - 1.");
  EXPECT_EQ(failure_of("{{ y }}", large), "no error: ");  // what is not mentioned is not looked at
  RenderInput wrong;
  wrong.extra = Json::array({1});
  EXPECT_EQ(failure_of("x", wrong), "The extra variables of a chat template must be a JSON object.");
}

// A namespace can hold itself; printing it must end and freeing it must not leak.
TEST(ChatTemplateErrors, SelfReferencesEnd) {
  EXPECT_NE(failure_of("{% set n = namespace() %}{% set n.n = [n] %}{{ n.n }}").find("cannot be printed"),
            std::string::npos);
  EXPECT_EQ(failure_of("{% for i in [1] %}{{ loop.changed(loop) }}{% endfor %}"), "no error: True");
  EXPECT_EQ(
      failure_of(
          "{% set n = namespace() %}{% for i in [1] %}{% set n.l = loop %}{% endfor %}{{ n.l.nextitem }}"),
      "no error: ");
  EXPECT_EQ(failure_of("{% set n = namespace() %}{% for i in [5] %}{% macro m() %}{{ i }}{% endmacro %}"
                       "{% set n.m = m %}{% endfor %}{{ n.m() }}"),
            "no error: 5");
}

}  // namespace
}  // namespace doppler::tmpl
