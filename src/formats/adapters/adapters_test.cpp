// Adapters: patterns and scales of adapter_config.json, the sentences of refusals, and both kinds of file against each
// other and against base models.
#include <algorithm>

#include "base/json.h"
#include "formats/adapters/fit_adapter.h"
#include "formats/adapters/peft_config.h"
#include "formats/file_set_native.h"
#include "formats/test_helpers.h"

namespace doppler::formats {
namespace {

bool matches(std::string_view pattern, std::string_view module) {
  return must(ModulePattern::parse(pattern)).matches_end_of(module);
}

TEST(ModulePattern, IsMatchedAtTheEndOfAName) {
  constexpr std::string_view kQ = "model.layers.10.self_attn.q_proj";
  EXPECT_TRUE(matches("q_proj", kQ));
  EXPECT_TRUE(matches("self_attn.q_proj", kQ));
  EXPECT_TRUE(matches("layers\\.10\\.self_attn\\.q_proj", kQ));
  EXPECT_TRUE(matches(".*layers\\.1\\d\\..*(q_proj|down_proj)", kQ));
  EXPECT_TRUE(matches("^model.layers.[0-9]+.self_attn.[qk]_proj$", kQ));
  EXPECT_TRUE(matches("(?:layers\\.\\d+\\.)?self_attn.q_proj", kQ));
  EXPECT_FALSE(matches("proj", kQ));
  EXPECT_FALSE(matches("_proj", kQ));
  EXPECT_FALSE(matches("q_pro", kQ));
  EXPECT_FALSE(matches("layers.1.self_attn.q_proj", kQ));
  EXPECT_FALSE(matches("layers.[^1]+.self_attn.q_proj", kQ));
  EXPECT_FALSE(matches("k_proj|v_proj", kQ));
}

TEST(ModulePattern, TakesABoundedNumberOfSteps) {
  EXPECT_FALSE(matches("(a*)*(a*)*(a*)*b", std::string(200, 'a')));
}

TEST(ModulePattern, RefusesWhatItDoesNotKnow) {
  for (const char* pattern : {"a{2}", "(?=a)", "(a", "a)", "[a", "\\b", "*a"}) {
    const auto parsed = ModulePattern::parse(pattern);
    ASSERT_FALSE(parsed) << pattern;
    EXPECT_NE(parsed.error().message().find("is not supported at its character"), std::string::npos)
        << pattern;
  }
}

std::string config_text(const std::string& more) {
  return "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8" + more + "}";
}

TEST(PeftConfig, ScalesFollowPatternsAndRsLora) {
  const PeftConfig plain = must(parse_peft_config(config_text(
      R"(, "rank_pattern": {"layers.1.q_proj": 2, "q_proj": 16}, "alpha_pattern": {"v_proj": 12})")));
  EXPECT_EQ(plain.rank_of("model.layers.1.q_proj"), 2u);
  EXPECT_EQ(plain.rank_of("model.layers.0.q_proj"), 16u);
  EXPECT_EQ(plain.rank_of("model.layers.0.k_proj"), 4u);
  EXPECT_EQ(plain.scale_of("model.layers.0.v_proj", 4), 3.0f);
  EXPECT_EQ(plain.scale_of("model.layers.0.k_proj", 4), 2.0f);
  const PeftConfig rslora = must(parse_peft_config(config_text(R"(, "use_rslora": true)")));
  EXPECT_EQ(rslora.scale_of("q_proj", 4), 4.0f);
}

TEST(PeftConfig, RefusesByName) {
  const std::pair<std::string, const char*> cases[] = {
      {R"({"peft_type": "IA3"})", "peft_type \"IA3\""},
      {config_text(R"(, "layer_replication": [[0, 2]])"), "layer_replication"},
      {config_text(R"(, "trainable_token_indices": [1])"), "trainable_token_indices"},
      {config_text(R"(, "target_parameters": ["experts.gate_up_proj"])"), "target_parameters"},
      {config_text(R"(, "init_lora_weights": "pissa_niter_4")"), "init_lora_weights \"pissa_niter_4\""},
      {config_text(R"(, "rank_pattern": {"q_proj": 0})"), "rank 0"},
      {config_text(R"(, "alpha_pattern": {"q_proj": "x"})"), "no number"},
      {config_text(R"(, "alora_invocation_tokens": [-1])"), "alora_invocation_tokens"},
      {R"({"peft_type": "LORA", "r": 5000})", "rank 5000"},
  };
  for (const auto& [text, named] : cases) {
    const auto parsed = parse_peft_config(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message().find(named), std::string::npos) << parsed.error().message();
  }
  EXPECT_TRUE(
      parse_peft_config(config_text(R"(, "target_parameters": [], "init_lora_weights": "gaussian")")));
}

std::string data(const std::string& path) { return std::string(ADAPTERS_DIR) + "/" + path; }

Adapter open(const std::string& path) { return must(run_now(open_adapter(must(open_file_set(data(path)))))); }
ModelConfig model_of(const std::string& path) {
  const auto checkpoint = must(run_now(open_checkpoint(must(open_file_set(data(path))))));
  return must(read_config(*checkpoint));
}

TEST(Adapter, KnowsItsFiles) {
  EXPECT_TRUE(must(run_now(is_adapter(*must(open_file_set(data("llama/adapters/qv_r4")))))));
  EXPECT_TRUE(must(run_now(is_adapter(*must(open_file_set(data("llama/gguf/qv_r4.gguf")))))));
  EXPECT_FALSE(must(run_now(is_adapter(*must(open_file_set(data("llama/gguf/base.gguf")))))));
  EXPECT_FALSE(must(run_now(is_adapter(*must(open_file_set(data("llama")))))));
}

TEST(Adapter, PartsAreGatheredByModule) {
  const Adapter adapter = open("llama/adapters/modules_to_save");
  EXPECT_EQ(adapter.tensors.size(), 4u);
  ASSERT_EQ(adapter.replaced.size(), 2u);
  EXPECT_EQ(adapter.replaced[0].tensor, "lm_head.weight");
  EXPECT_EQ(adapter.replaced[1].tensor, "model.embed_tokens.weight");
  const Adapter biases = open("qwen2/adapters/bias_lora_only");
  EXPECT_EQ(biases.replaced[0].tensor, "model.layers.0.self_attn.q_proj.bias");
}

void expect_equal(const FittedMatrix& a, const FittedMatrix& b) {
  EXPECT_EQ(a.n, b.n);
  EXPECT_EQ(a.k, b.k);
  EXPECT_EQ(a.scale, b.scale);
  EXPECT_EQ(a.a, b.a);
  EXPECT_EQ(a.b, b.b);
}

// An adapter means the same in both kinds of file, to a model of either kind, although their rows of q and k differ in
// order.
TEST(FitAdapter, BothKindsOfFileAreTheSame) {
  for (const char* base : {"llama", "llama/gguf/base.gguf"}) {
    const ModelConfig model = model_of(base);
    for (const char* name : {"all_r8", "embed_lora", "regex"}) {
      const FittedAdapter peft = must(fit_adapter(open(std::string("llama/adapters/") + name), model));
      const FittedAdapter gguf = must(fit_adapter(open(std::string("llama/gguf/") + name + ".gguf"), model));
      EXPECT_NE(peft.serial, gguf.serial);
      EXPECT_EQ(peft.rank(), gguf.rank());
      ASSERT_EQ(peft.matrices.size(), gguf.matrices.size());
      for (const FittedMatrix& matrix : peft.matrices) {
        const auto other = std::ranges::find_if(gguf.matrices, [&](const FittedMatrix& m) {
          return m.tensor == matrix.tensor && m.layer == matrix.layer;
        });
        ASSERT_NE(other, gguf.matrices.end()) << matrix.label;
        expect_equal(matrix, *other);
      }
      ASSERT_EQ(peft.embedding.has_value(), gguf.embedding.has_value());
      if (peft.embedding) expect_equal(*peft.embedding, *gguf.embedding);
    }
  }
}

TEST(FitAdapter, AMismatchNamesTheFirstTensor) {
  const auto other_size = fit_adapter(open("llama/adapters/all_r8"), model_of("qwen3"));
  ASSERT_FALSE(other_size);
  EXPECT_NE(other_size.error().message().find("does not fit the model"), std::string::npos);
  EXPECT_NE(other_size.error().message().find("model.layers.0."), std::string::npos)
      << other_size.error().message();
  Adapter adapter = open("llama/adapters/qv_r4");
  adapter.tensors[0].tensor = "model.layers.0.self_attn.qkv";
  const auto unknown = fit_adapter(adapter, model_of("llama"));
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message().find("no matrix \"model.layers.0.self_attn.qkv\""), std::string::npos);
}

TEST(FitAdapter, AFusedMatrixIsItsParts) {
  Adapter adapter;
  adapter.tensors = {{.tensor = "model.layers.0.self_attn.qkv_proj", .rank = 1, .n = 80, .k = 48}};
  adapter.tensors[0].a.resize(48, 1);
  for (int i = 0; i < 80; ++i) adapter.tensors[0].b.push_back(static_cast<float>(i));
  const FittedAdapter fitted = must(fit_adapter(adapter, model_of("llama")));
  ASSERT_EQ(fitted.matrices.size(), 3u);
  EXPECT_EQ(fitted.matrices[1].tensor, TensorId::kK);
  EXPECT_EQ(fitted.matrices[1].b.front(), 48.0f);
  EXPECT_EQ(fitted.matrices[2].b.back(), 79.0f);
  adapter.tensors.push_back(adapter.tensors[0]);
  EXPECT_FALSE(fit_adapter(adapter, model_of("llama")));  // twice
}

// Files whose parts do not belong together, made of a good one.
TEST(Adapter, RefusesPartsThatDoNotBelongTogether) {
  MemoryFileSet::Files files;
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
    files[name] = read_file(data(std::string("llama/adapters/qv_r4/") + name));
  }
  uint64_t read = 0;
  const auto opened = [&](std::string_view from, std::string_view to) {
    MemoryFileSet::Files changed = files;
    for (auto& [name, bytes] : changed) {
      std::string text(bytes.begin(), bytes.end());
      const size_t at = text.find(from);
      if (at == std::string::npos) continue;
      text.replace(at, from.size(), to);
      bytes = bytes_of_text(text);
    }
    return run_now(open_adapter(std::make_unique<MemoryFileSet>(changed, "", &read)));
  };
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"\"r\": 4", "\"r\": 6", "says rank 6"},
      {"q_proj.lora_B.weight", "q_proj.lora_X.weight", "of a kind that is not supported"},
      {"\"use_dora\": false", "\"use_dora\": true", "no lora_magnitude_vector"},
      {"layers.0.self_attn.q_proj.lora_B.weight", "layers.9.self_attn.q_proj.lora_B.weight",
       "A and B is missing"},
  };
  for (const auto& [from, to, sentence] : cases) {
    const auto adapter = opened(from, to);
    ASSERT_FALSE(adapter) << from;
    EXPECT_NE(adapter.error().message().find(sentence), std::string::npos) << adapter.error().message();
  }
  EXPECT_TRUE(opened("no such text", ""));
}

}  // namespace
}  // namespace doppler::formats
