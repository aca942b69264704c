// Composition from a folder on disk, so that the cases do not depend on any real kernel.
#include "gpu/wgsl_composer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/testing/environment.h"

namespace doppler::gpu {
namespace {

class WgslComposerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/wgsl_composer_test";
    file("op/main", "//!import op/shared\n//!import op/weights\nfn main() {}\n");
    file("op/weights", "//!import op/shared\nfn weight() {}\n");
    file("op/weights_q4", "fn weight_q4() {}\n");
    file("op/shared", "fn shared() {}\n");
    file("op/cycle", "//!import op/cycle\nfn cycle() {}\n");
    file("op/broken", "//!import op/nowhere\n");
    variable_.emplace("DOPPLER_WGSL_DIR", folder_);
    caps_.f16 = caps_.subgroups = true;
  }
  void TearDown() override {
    variable_.reset();
    std::filesystem::remove_all(folder_);
  }
  void file(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ + "/" + name + ".wgsl";
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string compose(std::string_view entry, const ComposeOptions& options = {}) const {
    const auto text = compose_wgsl(entry, caps_, options);
    return text ? *text : "error: " + text.error().message();
  }

  std::string folder_;
  std::optional<EnvironmentVariable> variable_;
  Caps caps_;
};

TEST_F(WgslComposerTest, WritesOutTheBlocksOfAFileOnDisk) {
  file("a", "//!repeat i = 0, 1\nvar s$(i): u32;\n//!end");
  EXPECT_EQ(compose("a"), "// ---- a.wgsl\nvar s0: u32;\nvar s1: u32;\n");
  file("b", "//!repeat i = 0, 1\n");
  EXPECT_NE(compose("b").find("b.wgsl: line 1: \"//!repeat i = 0, 1\" has no //!end."), std::string::npos)
      << compose("b");
}

TEST_F(WgslComposerTest, ImportsEachFragmentOnceAndFirst) {
  EXPECT_EQ(compose("op/main"),
            "// ---- op/shared.wgsl\nfn shared() {}\n\n"
            "// ---- op/weights.wgsl\nfn weight() {}\n\n"
            "// ---- op/main.wgsl\nfn main() {}\n\n");
  EXPECT_EQ(compose("op/cycle"), "// ---- op/cycle.wgsl\nfn cycle() {}\n\n");
}

TEST_F(WgslComposerTest, SubstitutesAFragment) {
  const std::pair<std::string_view, std::string_view> substitution = {"op/weights", "op/weights_q4"};
  EXPECT_EQ(compose("op/main", {.substitutions = {&substitution, 1}}),
            "// ---- op/shared.wgsl\nfn shared() {}\n\n"
            "// ---- op/weights_q4.wgsl\nfn weight_q4() {}\n\n"
            "// ---- op/main.wgsl\nfn main() {}\n\n");
}

TEST_F(WgslComposerTest, ImportsAgainUnderOtherNames) {
  file("op/format", "fn load(i: u32) -> u32 { return weights[i] + scales[i]; }\n");
  file("op/apart", "//!import op/format as other_\n");
  file("op/same", "//!import op/format as other_ with the same weights\n");
  EXPECT_NE(
      compose("op/apart").find("fn other_load(i: u32) -> u32 { return other_weights[i] + other_scales[i]; }"),
      std::string::npos);
  EXPECT_NE(compose("op/same").find("fn other_load(i: u32) -> u32 { return weights[i] + scales[i]; }"),
            std::string::npos);
}

TEST_F(WgslComposerTest, WritesNumbersThatBothCompilersRead) {
  using Type = WgslConst::Type;
  const WgslConst consts[] = {{"N", Type::kU32, 4294967295.0}, {"LOW", Type::kI32, -2147483648.0},
                              {"EPS", Type::kF32, 1e-5},       {"ONE", Type::kF32, 1},
                              {"ON", Type::kBool, 1},          {"TENTH", Type::kF32, 0.1}};
  const std::string text = compose("op/shared", {.consts = consts});
  EXPECT_EQ(text.substr(0, text.find("// ")),
            "const N: u32 = 4294967295u;\nconst LOW: i32 = i32(-2147483648);\nconst EPS: f32 = f32(1e-05);\n"
            "const ONE: f32 = f32(1e+00);\nconst ON: bool = true;\nconst TENTH: f32 = f32(1e-01);\n");
  const WgslConst wrong[] = {
      {"HALF", Type::kU32, 0.5}, {"MINUS", Type::kU32, -1}, {"HUGE", Type::kF32, 1e39}};
  for (const WgslConst& constant : wrong) {
    EXPECT_EQ(compose("op/shared", {.consts = {&constant, 1}}).substr(0, 16), "error: Constant ");
  }
}

TEST_F(WgslComposerTest, OnlyTintIsToldAboutSubgroups) {
  caps_.dialect = WgslDialect::kTint;
  EXPECT_TRUE(compose("op/shared", {.f16 = true, .subgroups = true})
                  .starts_with("enable f16;\nenable subgroups;\ndiagnostic(off, subgroup_uniformity);\n// "));
  caps_.dialect = WgslDialect::kNaga;
  EXPECT_TRUE(compose("op/shared", {.f16 = true, .subgroups = true}).starts_with("enable f16;\n// "));
}

TEST_F(WgslComposerTest, NamesWhatIsMissing) {
  EXPECT_TRUE(compose("op/broken").starts_with("error: There is no WGSL file \"op/nowhere\""));
  EXPECT_TRUE(compose("op/broken").ends_with("\n  While importing it into op/broken.wgsl."));
  caps_.f16 = false;
  EXPECT_EQ(compose("op/main", {.f16 = true}), "error: Kernel op/main needs f16, which this device lacks.");
  caps_.subgroups = false;
  EXPECT_EQ(compose("op/main", {.subgroups = true}),
            "error: Kernel op/main needs subgroups, which this device lacks.");
  EXPECT_EQ(compose("op/main", {.matrix = true}),
            "error: Kernel op/main needs f16 subgroup matrices, which this device lacks.");
}

TEST_F(WgslComposerTest, MatricesBringTheirExtensions) {
  caps_.dialect = WgslDialect::kTint;
  caps_.matrix_f16 = true;
  EXPECT_TRUE(compose("op/shared", {.matrix = true})
                  .starts_with("enable f16;\nenable subgroups;\ndiagnostic(off, subgroup_uniformity);\n"
                               "enable chromium_experimental_subgroup_matrix;\n"
                               "diagnostic(off, chromium.subgroup_matrix_uniformity);\n// "));
}

}  // namespace
}  // namespace doppler::gpu
