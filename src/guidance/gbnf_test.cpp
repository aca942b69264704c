// Tests GBNF as Lark: what becomes a terminal, how characters are written, which sentence refuses the rest.
// guides_test.cpp tests that the library reads the result.
#include "guidance/gbnf.h"

#include <gtest/gtest.h>

namespace doppler::guidance {
namespace {

TEST(Gbnf, BecomesLark) {
  const auto lark = gbnf_to_lark(R"gbnf(# a comment
root ::= "a/b" [^"\x41-Z\]] ( name | "" )* . {2}
  | name{1,} other?
name ::= [a-z_] # behind
other ::= "(" other ")" |
  "é\n"
)gbnf");
  ASSERT_TRUE(lark) << lark.error().sentence();
  EXPECT_EQ(*lark, R"lark(start: r2
T0: /[a-z_]/
r1: /\x{28}/ r1 /\x{29}/ | /\x{E9}\x{A}/
r2: /a\x{2F}b/ /[^\x{22}A-Z\x{5D}]/ ( T0 | "" )* /(?s:.)/{2,2} | T0{1,} r1?
)lark");
}

TEST(Gbnf, IsToldFromLark) {
  EXPECT_TRUE(is_gbnf("root ::= \"x\""));
  EXPECT_FALSE(is_gbnf("start: \"::=\""));
}

TEST(Gbnf, WhatCannotBeReadIsToldWithItsLine) {
  const char* const cases[][2] = {
      {"", "no rule \"root\""},
      {"root ::= x", "no rule \"x\""},
      {"root ::= \"a\nroot", "Line 1"},
      {"root ::= \"a\"\nroot ::= \"b\"", "two rules"},
      {"root ::= (\"a\"", "\")\""},
      {"root ::= [b-a]", "ascends"},
      {"root ::= []", "at least one"},
      {"root ::= \"\\q\"", "escape"},
      {"root ::= \"a\"\nx ::= <[1]>", "Line 2"},
      {"root ::= \"a\"{2,1}", "{M,N}"},
      {"root ::= \"a\" ]", "the end of the rule"},
  };
  for (const auto& [text, part] : cases) {
    const auto lark = gbnf_to_lark(text);
    ASSERT_FALSE(lark) << text;
    EXPECT_NE(lark.error().sentence().find(part), std::string::npos) << lark.error().sentence();
  }
  EXPECT_FALSE(gbnf_to_lark("root ::= " + std::string(200, '(')));
}

}  // namespace
}  // namespace doppler::guidance
