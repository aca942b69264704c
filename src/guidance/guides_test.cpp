// Grammars of each kind over a vocabulary of bytes: which texts they take and which they do not.
#include "guidance/guides.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/json.h"

namespace doppler::guidance {
namespace {

constexpr uint32_t kEnd = 256, kOtherEnd = 257, kControl = 258, kWord = 259;

// Every byte, two ends, a control token that is spelled like text, and a word.
Vocabulary bytes() {
  Vocabulary out;
  for (int byte = 0; byte < 256; ++byte) out.tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* token : {"</s>", "<|eot|>", "{", "true"}) out.tokens.emplace_back(token);
  out.is_control.assign(out.tokens.size(), false);
  for (const uint32_t id : {kEnd, kOtherEnd, kControl}) out.is_control[id] = true;
  out.ends = {kEnd, kOtherEnd};
  return out;
}

Guides& guides() {
  static const auto made = Guides::create(bytes());
  EXPECT_TRUE(made) << made.error().sentence();
  return **made;
}

bool allows(const std::vector<uint32_t>& mask, uint32_t token) {
  return (mask[token / 32] >> token % 32 & 1) != 0;
}

// "yes": the text is whole. "more": it is a beginning. "no": at some byte it is neither.
std::string taken(const Grammar& grammar, std::string_view text) {
  auto matcher = guides().begin(grammar);
  if (!matcher) return matcher.error().sentence();
  for (const char c : text) {
    const auto mask = matcher->allowed();
    if (!mask) return mask.error().sentence();
    const auto token = static_cast<uint8_t>(c);
    if (!allows(*mask, token)) return "no";
    const auto accepted = matcher->accept(token);
    if (!accepted) return accepted.error().sentence();
  }
  const auto mask = matcher->allowed();
  if (!mask) return mask.error().sentence();
  EXPECT_EQ(allows(*mask, kEnd), allows(*mask, kOtherEnd));
  EXPECT_FALSE(allows(*mask, kControl));
  if (!allows(*mask, kEnd)) return "more";
  return "yes";
}

TEST(Guides, EachKindTakesItsTexts) {
  constexpr auto kSchema = GrammarKind::kJsonSchema;
  const char* const kList = R"(
root ::= value
value ::= "[" ws ( value ( "," ws value )* )? "]" ws | number ws
number ::= "-"? [0-9]+ ( "." [0-9]+ )?
ws ::= [ \n]*
)";
  const struct {
    Grammar grammar;
    const char* text;
    const char* want;
  } cases[] = {
      {{kSchema,
        R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})",
        {},
        true},
       R"({"a": 12})",
       "yes"},
      {{kSchema,
        R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})",
        {}},
       R"({"a":12})",
       "yes"},
      {{kSchema,
        R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})",
        {}},
       R"({"a": )",
       "no"},
      {{kSchema, R"({"type": "array", "x-guidance": {"whitespace_flexible": true}})", {}}, "[ ", "more"},
      {{kSchema, R"({"type": "array", "x-guidance": {"lenient": true}})", {}}, "[ ", "no"},
      {{kSchema,
        R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})",
        {}},
       R"({"b)",
       "no"},
      {{kSchema, R"({"enum": ["x", "y"]})", {}}, R"("z)", "no"},
      {{kSchema, "true", {}, true}, R"({"a": [true, null]})", "yes"},
      {{kSchema, R"({"type": "array"})", {}, true}, "[1, ", "more"},
      {{kSchema, R"({"type": "array"})", {}, true},
       "[                                                  ",
       "no"},
      {{GrammarKind::kRegex, "[ab]+c?", {}}, "abc", "yes"},
      {{GrammarKind::kRegex, "[ab]+c?", {}}, "abca", "no"},
      {{GrammarKind::kGrammar, "start: \"x\" /[0-9]{2}/", {}}, "x1", "more"},
      {{GrammarKind::kGrammar, "start: \"x\" /[0-9]{2}/", {}}, "x12", "yes"},
      {{GrammarKind::kGrammar, "root ::= [a-z]+ \"x\" (\"1\" | \"é\")", {}}, "abxx\xC3\xA9", "yes"},
      {{GrammarKind::kGrammar, "root ::= [a-z]+ \"x\" (\"1\" | \"é\")", {}}, "ab1", "no"},
      {{GrammarKind::kGrammar, kList, {}}, "[1, [ -2.5,[]] , 30 ]\n", "yes"},
      {{GrammarKind::kGrammar, kList, {}}, "[1, [", "more"},
      {{GrammarKind::kGrammar, kList, {}}, "[1]]", "no"},
  };
  for (const auto& [grammar, text, want] : cases)
    EXPECT_EQ(taken(grammar, text), want) << grammar.text << "\n" << text;
}

// Schemas with keywords that the library lacks, each with allowed texts and refused ones.
TEST(Guides, KeywordsThatTheLibraryLacksAreSaidByOthers) {
  std::ifstream file("tests/data/schema_cases.json");
  std::stringstream text;
  text << file.rdbuf();
  const auto data = parse_json(text.str(), "schema_cases.json");
  ASSERT_TRUE(data) << data.error().sentence();
  for (const Json& row : (*data)["said"]) {
    const Grammar grammar{GrammarKind::kJsonSchema, to_text(row["schema"]), {}};
    for (const Json& value : row["valid"])
      EXPECT_EQ(taken(grammar, to_text(value)), "yes") << row["name"].text() << to_text(value);
    for (const Json& value : row["invalid"]) {
      const std::string got = taken(grammar, to_text(value));
      EXPECT_TRUE(got == "no" || got == "more") << row["name"].text() << to_text(value) << ": " << got;
    }
  }
  for (const Json& row : (*data)["refused"]) {
    const auto matcher = guides().begin({GrammarKind::kJsonSchema, to_text(row["schema"]), {}});
    ASSERT_FALSE(matcher) << row["name"].text();
    EXPECT_NE(matcher.error().sentence().find(row["sentence"].text()), std::string::npos)
        << matcher.error().sentence();
  }
}

// The schemas of tools stand in a grammar.
TEST(Guides, SchemasWithinAGrammarAreSaidByOthersToo) {
  const Grammar grammar{
      GrammarKind::kGrammar,
      "// %json {\"a\nstart: \"%json {\" part /%json \\{/\npart: %json "
      R"({"type": "string", "format": "path", "not": {"enum": ["}", "\"{"]}, "maxLength": 2})",
      {}};
  EXPECT_EQ(taken(grammar, R"(%json {"a"%json {)"), "yes");
  EXPECT_EQ(taken(grammar, R"(%json {"}"%json {)"), "no");
}

// Tests the two options of "x-guidance".
TEST(Guides, ASchemaMayAskToBeLenient) {
  const auto with = [](const char* option) {
    return Grammar{
        GrammarKind::kJsonSchema,
        std::string(R"({"oneOf": [{"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}],
                                   "x-guidance": {)") +
            option + "}}",
        {}};
  };
  EXPECT_NE(taken(with(""), "\"ab\"").find("cannot be honoured"), std::string::npos);
  EXPECT_EQ(taken(with(R"("coerce_one_of": true)"), "\"ab\""), "yes");
  EXPECT_EQ(taken({GrammarKind::kJsonSchema,
                   R"({"type": "string", "not": {"pattern": "a"}, "x-guidance": {"lenient": true}})",
                   {}},
                  "\"a\""),
            "yes");
}

TEST(Guides, WhatCannotBeHonouredIsRefusedByName) {
  const struct {
    Grammar grammar;
    const char* part;
  } cases[] = {
      {{GrammarKind::kJsonSchema, R"({"not": {"pattern": "a"}})", {}}, "not"},
      {{GrammarKind::kJsonSchema, R"({"type": "array", "uniqueItems": true})", {}}, "uniqueItems"},
      {{GrammarKind::kJsonSchema, R"({"not": {}})", {}}, "schema is false"},
      {{GrammarKind::kJsonSchema, R"({"$ref": "http://example.org/x"})", {}}, "example.org"},
      {{GrammarKind::kJsonSchema, "{", {}}, "The JSON schema"},
      {{GrammarKind::kJsonSchema, "[1]", {}}, "is an object"},
      {{GrammarKind::kRegex, "(a", {}}, "The regular expression cannot be used: unclosed group."},
      {{GrammarKind::kGrammar, "begin: \"a\"", {}}, "grammar"},
      {{GrammarKind::kGrammar, "a ::= \"b\"", {}}, "root"},
  };
  for (const auto& [grammar, part] : cases) {
    const auto matcher = guides().begin(grammar);
    ASSERT_FALSE(matcher) << grammar.text;
    EXPECT_NE(matcher.error().sentence().find(part), std::string::npos) << matcher.error().sentence();
    EXPECT_EQ(matcher.error().kind(), ErrorKind::kInvalidInput);
  }
}

// If only one text is possible, it is forced as the model writes it, or by the longest tokens if the model's tokens
// spell another text. Without the model's way, no text is forced.
TEST(Guides, OneTextIsForcedAsTheModelWritesIt) {
  const Grammar grammar{GrammarKind::kRegex, "[ab]: true;[cd]", {}};
  Vocabulary vocabulary = bytes();
  vocabulary.tokenize = [](std::string_view text) { return std::vector<uint32_t>(text.begin(), text.end()); };
  const auto apart = Guides::create(vocabulary);
  vocabulary.tokenize = [](std::string_view) { return std::vector<uint32_t>{'x'}; };
  const auto longest = Guides::create(vocabulary);
  ASSERT_TRUE(apart && longest);
  const std::pair<Guides*, std::vector<uint32_t>> cases[] = {
      {&**apart, {':', ' ', 't', 'r', 'u', 'e', ';'}}, {&**longest, {':', ' ', kWord, ';'}}, {&guides(), {}}};
  for (const auto& [of, wanted] : cases) {
    auto matcher = of->begin(grammar);
    ASSERT_TRUE(matcher);
    EXPECT_TRUE(matcher->forced()->empty());
    ASSERT_TRUE(matcher->accept('a'));
    EXPECT_EQ(*matcher->forced(), wanted);
    for (const uint32_t token : wanted) {
      const auto mask = matcher->allowed();
      EXPECT_TRUE(allows(*mask, token) && !allows(*mask, token == 't' ? kWord : 't'));
      ASSERT_TRUE(matcher->accept(token));
    }
    EXPECT_TRUE(matcher->forced()->empty());
  }
}

TEST(Guides, NumbersOfJsonEnd) {
  auto number = guides().begin({GrammarKind::kJsonSchema, R"({"type": "number", "minimum": 0})", {}});
  auto digits = guides().begin({GrammarKind::kJsonSchema, R"({"type": "string", "pattern": "^0{30}$"})", {}});
  ASSERT_TRUE(number && digits);
  ASSERT_TRUE(number->accept('0') && number->accept('.') && digits->accept('"'));
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(allows(*number->allowed(), '1')) << i;
    ASSERT_TRUE(number->accept('1') && digits->accept('0'));
  }
  EXPECT_FALSE(allows(*number->allowed(), '1'));
  EXPECT_TRUE(allows(*number->allowed(), kEnd));
  EXPECT_TRUE(allows(*digits->allowed(), '0')) << "nothing else may follow";
}

// A second matcher of a grammar is a copy of the first one's beginning.
TEST(Guides, AnswersOfOneGrammarDoNotMeet) {
  const Grammar grammar{GrammarKind::kRegex, "ab|ba", {}};
  auto one = guides().begin(grammar), other = guides().begin(grammar);
  ASSERT_TRUE(one && other);
  ASSERT_TRUE(one->accept('a'));
  ASSERT_TRUE(other->accept('b'));
  EXPECT_TRUE(allows(*one->allowed(), 'b'));
  EXPECT_TRUE(allows(*other->allowed(), 'a'));
  EXPECT_FALSE(allows(*other->allowed(), kWord));
  EXPECT_FALSE(other->accept('b'));
}

}  // namespace
}  // namespace doppler::guidance
