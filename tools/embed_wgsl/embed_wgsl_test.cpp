// The generator: input that it accepts, its output, and the sentence for everything it refuses. A new rule is
// a row of kRefused.
#include <gtest/gtest.h>

#include "gpu/wgsl_repeat.h"
#include "header_writer.h"
#include "wgsl_reader.h"

namespace doppler::embed_wgsl {
namespace {

constexpr std::string_view kGood = R"(// A kernel.
//!import common/q4_k
//!import linear/weights/format

struct Params { rows: u32, eps: f32, /* gone: u32, */ shift: i32 }
struct Other { a: vec4<f32> }
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@binding(0) @group(0) var<uniform> params: Params;
// @group(0) @binding(7) var<storage> commented_out: array<f32>;
@group(0) @binding(1u)
var<storage> x_q8: array<u32>;
var<workgroup> shared_sums: array<f32, 64>;
@compute @workgroup_size(64) fn main() {}
)";

TEST(ReadWgsl, FindsImportsParamsAndBindings) {
  const auto file = read_wgsl(kGood);
  ASSERT_TRUE(file) << file.error();
  EXPECT_EQ(file->imports, (std::vector<std::string>{"common/q4_k", "linear/weights/format"}));
  ASSERT_EQ(file->params.size(), 3u);
  EXPECT_EQ(file->params[1].name, "eps");
  EXPECT_EQ(file->params[2].type, "i32");
  ASSERT_EQ(file->bindings.size(), 3u);
  EXPECT_EQ(file->bindings[0].kind, "kUniform");
  EXPECT_EQ(file->bindings[1].name, "x_q8");
  EXPECT_EQ(file->bindings[1].kind, "kRead");
  EXPECT_EQ(file->bindings[2].kind, "kReadWrite");
}

TEST(ReadWgsl, AFragmentMayDeclareNothing) {
  const auto file = read_wgsl("fn double(x: f32) -> f32 { return 2.0 * x; }");
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->has_params);
  EXPECT_TRUE(file->bindings.empty());
}

struct Refused {
  std::string_view name;
  std::string_view text;
  std::string_view sentence;
};
constexpr Refused kRefused[] = {
    {"vector_member", "struct Params {\n  a: u32,\n  b: vec2<f32>,\n}",
     "line 3: member \"b\" of struct Params has type vec2<...>; u32, i32 and f32 are allowed."},
    {"bool_member", "struct Params { on: bool }",
     "line 1: member \"on\" of struct Params has type bool; u32, i32 and f32 are allowed."},
    {"aligned_member", "struct Params { @align(16) a: u32 }",
     "line 1: struct Params may not use attributes: every member is 4 bytes."},
    {"member_twice", "struct Params { a: u32, a: u32 }",
     "line 1: struct Params has two members named \"a\"."},
    {"params_twice", "struct Params { a: u32 }\nstruct Params { b: u32 }",
     "line 2: struct Params is declared twice."},
    {"empty_params", "struct Params {}", "line 1: struct Params has no members; leave it out."},
    {"cut_off", "struct Params { a", "line 1: struct Params is cut off or malformed near \"a\"."},
    {"other_group", "@group(1) @binding(0) var<uniform> p: Params;",
     "line 1: @group(1) is used; every binding belongs to group 0."},
    {"gap", "@group(0) @binding(0) var<uniform> p: P;\n@group(0) @binding(2) var<storage> x: X;",
     "@binding(1) is missing; \"x\" has @binding(2), and numbers must run from 0 without gaps."},
    {"number_twice", "@group(0) @binding(0) var<uniform> p: P;\n@group(0) @binding(0) var<storage> x: X;",
     "\"p\" and \"x\" both have @binding(0)."},
    {"group_missing", "@binding(0) var<uniform> p: P;",
     "line 1: @group and @binding must stand together, one after the other."},
    {"computed_number", "@group(0) @binding(N) var<uniform> p: P;",
     "line 1: @binding needs a plain number, such as @binding(0)."},
    {"write_only", "@group(0) @binding(0) var<storage, write> p: P;",
     "line 1: binding \"p\" is var<storage, write>; allowed are uniform, storage with read, storage with "
     "read_write."},
    {"texture", "@group(0) @binding(0) var t: texture_2d<f32>;",
     "line 1: binding 0 is not a buffer; write var<uniform> or var<storage, ...>."},
    {"late_import", "fn f() {}\n//!import a/b",
     "line 2: an //!import must stand before the first declaration."},
    {"import_with_extension", "//!import a/b.wgsl",
     "line 1: \"//!import a/b.wgsl\" does not name one fragment; write //!import folder/file, without "
     "extension."},
    {"import_as_words", "//!import a/b as second copy",
     "line 1: \"//!import a/b as second copy\" does not name one fragment; write //!import folder/file, "
     "without "
     "extension."},
    {"import_of_nothing", "//!import",
     "line 1: \"//!import\" does not name one fragment; write //!import folder/file, without extension."},
};

class ReadWgslRefuses : public testing::TestWithParam<Refused> {};
TEST_P(ReadWgslRefuses, WithASentence) {
  const auto file = read_wgsl(GetParam().text);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error(), GetParam().sentence);
}
INSTANTIATE_TEST_SUITE_P(Rows, ReadWgslRefuses, testing::ValuesIn(kRefused),
                         [](const auto& row) { return std::string(row.param.name); });

std::string expanded(std::string_view text) {
  const auto out = gpu::expand_wgsl(text);
  return out ? *out : "refused: " + out.error();
}

TEST(ExpandWgsl, LeavesOtherTextsAlone) {
  EXPECT_EQ(expanded(kGood), kGood);
  EXPECT_EQ(expanded("let a = 1; // no break at the end"), "let a = 1; // no break at the end");
  EXPECT_EQ(expanded(""), "");
}

TEST(ExpandWgsl, RepeatsABlockForEachValue) {
  EXPECT_EQ(
      expanded(
          "{\n//!repeat i = 0 to 2; from = u, u, then\n  s$(i) = load($(16 * (i + 1) - 4 % 3)u, $(from));\n\n"
          "//!end\n}\n"),
      "{\n  s0 = load(15u, u);\n\n  s1 = load(31u, u);\n\n  s2 = load(47u, then);\n\n}\n");
}

TEST(ExpandWgsl, RepeatsNest) {
  EXPECT_EQ(expanded("//!repeat r = 0, 1\n//!repeat t = 0 to 1; before = $(r * 8), $(r + 1)\nvar s$(r)$(t) = "
                     "$(before);\n"
                     "//!end\n//!end\n"),
            "var s00 = 0;\nvar s01 = 1;\nvar s10 = 8;\nvar s11 = 2;\n");
}

TEST(ExpandWgsl, UsesABlockWithItsValuesAsFarInAsTheUseIs) {
  EXPECT_EQ(expanded("//!note Puts a sum.\n//!block put r at\nput(s$(r), $(at));\n\n  inner($(2 * "
                     "r)u);\n//!end\n//!block both\n//!use put 1 x\n"
                     "  //!use put $(1 + 1) y\n//!end\nfn main() {\n  //!use both\n}\n"),
            "fn main() {\n  put(s1, x);\n\n    inner(2u);\n    put(s2, y);\n\n      inner(4u);\n}\n");
}

constexpr Refused kRefusedBlocks[] = {
    {"end_of_nothing", "a\n//!end\n", "line 2: //!end ends nothing."},
    {"no_end", "//!repeat i = 0 to 1\n//!repeat j = 0 to 1\n//!end\n",
     "line 1: \"//!repeat i = 0 to 1\" has no //!end."},
    {"no_values", "//!repeat i\n//!end",
     "line 1: \"i\" gives no variable its values; write i = 0 to 3 or name = a, b, c, with "
     "up to 64 values."},
    {"too_many", "//!repeat i = 0 to 64\n//!end",
     "line 1: \"i = 0 to 64\" gives no variable its values; write i = 0 to 3 or "
     "name = a, b, c, with up to 64 values."},
    {"backwards", "//!repeat i = 3 to 0\n//!end",
     "line 1: \"i = 3 to 0\" gives no variable its values; write i = 0 to 3 or "
     "name = a, b, c, with up to 64 values."},
    {"lists_that_differ", "//!repeat i = 0 to 2; w = a, b\n//!end",
     "line 1: \"w\" has 2 values and \"i\" has 3."},
    {"variable_twice", "//!repeat i = 0, 1\n//!repeat i = 0, 1\n//!end\n//!end",
     "line 2: \"i\" is a variable already."},
    {"no_variable", "\ns$(i)", "line 2: $(i) names no variable \"i\"."},
    {"word_in_a_sum", "//!repeat w = a, b\n$(w + 1)\n//!end",
     "line 2: $(w + 1) calculates with \"a\", which is no number."},
    {"below_zero", "$(1 - 2)", "line 1: $(1 - 2) is no number from 0 to 1048576."},
    {"too_large", "$(1048576 * 1048576 * 1048576 * 1048576)",
     "line 1: $(1048576 * 1048576 * 1048576 * 1048576) is no number from 0 to 1048576."},
    {"by_zero", "$(1 / 0)", "line 1: $(1 / 0) divides by 0."},
    {"no_operand", "$(1 + )", "line 1: $(1 +) lacks a number or a variable."},
    {"two_numbers", "$(1 2)", "line 1: $(1 2) is not understood at \"2\"."},
    {"no_bracket", "s$((1)u;", "line 1: \"$((1)u;\" has no end."},
    {"no_such_block", "//!use put 1", "line 1: there is no block \"put\" above."},
    {"block_uses_itself", "//!block put\n//!use put\n//!end\n//!use put",
     "line 2: there is no block \"put\" above."},
    {"other_count", "//!block put a b\n//!end\n//!use put 1",
     "line 3: block \"put\" takes 2 values; 1 are given."},
    {"block_twice", "//!block put\n//!end\n//!block put\n//!end", "line 3: there are two blocks \"put\"."},
    {"block_without_name", "//!block\n//!end",
     "line 1: //!block needs a name; write //!block name parameter ..."},
    {"block_in_a_repeat", "//!repeat i = 0, 1\n//!block put\n//!end\n//!end",
     "line 2: //!block stands inside another block."},
    {"unknown_directive", "//!repeated i = 0 to 1",
     "line 1: \"//!repeated i = 0 to 1\" is no directive; there are import, repeat, block, use, end and "
     "note."},
};

class ExpandWgslRefuses : public testing::TestWithParam<Refused> {};
TEST_P(ExpandWgslRefuses, WithASentence) {
  EXPECT_EQ(expanded(GetParam().text), "refused: " + std::string(GetParam().sentence));
}
INSTANTIATE_TEST_SUITE_P(Rows, ExpandWgslRefuses, testing::ValuesIn(kRefusedBlocks),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(CompactWgsl, KeepsWhatCountsAndMeansTheSame) {
  const auto file = read_wgsl(compact_wgsl(kGood));
  ASSERT_TRUE(file) << file.error();
  EXPECT_EQ(file->imports.size(), 2u);
  EXPECT_EQ(file->bindings.size(), 3u);
  EXPECT_EQ(compact_wgsl(
                "// Head.\n//!import a/b as c_\n\nfn f() {\n    let x  = 1; // one\n  /* two\n  three */}\n"),
            "//!import a/b as c_\nfn f(){\n let x=1;\n }\n");
  // Blanks that keep two tokens from becoming another one, or a comment, stay.
  EXPECT_EQ(compact_wgsl("const n: array<u32, 2> = f(a / *p, b - -c, d & &e, x > -1, 2 .5, s . t);"),
            "const n:array<u32,2> =f(a/ *p,b- -c,d& &e,x> -1,2 .5,s . t);\n");
}

TEST(WriteHeader, PadsParamsTo16BytesAndAssertsOffsets) {
  const auto header = write_header("op/op_fast.wgsl", kGood, *read_wgsl(kGood));
  ASSERT_TRUE(header) << header.error();
  for (const std::string_view expected :
       {"namespace doppler::wgsl::op_fast {", "  float eps = 0;\n",
        "  int32_t shift = 0;\n  uint32_t padding_0 = 0;\n", "static_assert(sizeof(Params) == 16);",
        "static_assert(offsetof(Params, shift) == 8);", "  kXQ8 = 1,\n",
        "    gpu::BindKind::kUniform,  // params\n    gpu::BindKind::kRead,  // x_q8\n",
        "    \"common/q4_k\",\n", "\"op/op_fast.wgsl\""}) {
    EXPECT_NE(header->find(expected), std::string::npos) << expected << "\nis missing in\n" << *header;
  }
}

TEST(WriteHeader, SplitsLongTextsIntoSeveralLiterals) {
  const std::string text = "//" + std::string(20000, 'x') + "\n";
  const auto header = write_header("op/op_long.wgsl", text, *read_wgsl(text));
  ASSERT_TRUE(header);
  size_t literals = 0;
  for (size_t at = header->find("R\"wgsl("); at != header->npos; at = header->find("R\"wgsl(", at + 1))
    ++literals;
  EXPECT_EQ(literals, 3u);
}

TEST(WriteHeader, RefusesWhatCannotBeCpp) {
  EXPECT_EQ(write_header("op/2x.wgsl", "", {}).error(),
            "the file name is not a C++ identifier followed by .wgsl; use letters, digits and _.");
  EXPECT_EQ(write_header("op/x.wgsl", "// )wgsl\"", {}).error(),
            "the text contains )wgsl\", which ends the generated string literal.");
  const auto clash =
      read_wgsl("@group(0) @binding(0) var<storage> a_b: A;\n@group(0) @binding(1) var<storage> aB: A;");
  ASSERT_TRUE(clash);
  EXPECT_EQ(write_header("op/x.wgsl", "", *clash).error(),
            "bindings \"a_b\" and \"aB\" would share the C++ name kAB.");
}

TEST(WriteRegistry, ListsFilesSortedByPath) {
  const std::string registry = write_registry({"b/b1.wgsl", "a/a1.wgsl"});
  EXPECT_NE(registry.find("    wgsl::a1::kSource,\n    wgsl::b1::kSource,\n"), std::string::npos) << registry;
  EXPECT_NE(registry.find("#include \"kernels/b/b1.wgsl.h\""), std::string::npos);
  EXPECT_NE(write_registry({}).find("embedded_wgsl() { return {}; }"), std::string::npos);
}

}  // namespace
}  // namespace doppler::embed_wgsl
