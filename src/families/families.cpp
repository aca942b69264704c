#include "families/families.h"

#include "base/text.h"
#include "families/family.h"

namespace doppler::families {
namespace {

struct Family {
  std::string_view name;  // as formats/architectures names it
  void (*build)(Builder& b);
};

constexpr Family kFamilies[] = {{"apertus", build_apertus},
                                {"bert", build_bert},
                                {"deepseek", build_deepseek},
                                {"ernie4_5", build_llama},
                                {"ernie4_5_moe", build_llama},
                                {"exaone4", build_exaone4},
                                {"gemma", build_gemma},
                                {"gemma2", build_gemma2},
                                {"gemma3", build_gemma3},
                                {"gemma3n", build_gemma3n},
                                {"gemma4", build_gemma4},
                                {"gemma_embedding", build_gemma3},
                                {"glm4", build_glm4},
                                {"glm4_moe", build_glm4_moe},
                                {"gpt_oss", build_llama},
                                {"granite", build_llama},
                                {"granite_hybrid", build_granite_hybrid},
                                {"hunyuan_v1", build_hunyuan_v1},
                                {"hunyuan_v1_moe", build_hunyuan_v1},
                                {"lfm2", build_lfm2},
                                {"lfm2_moe", build_lfm2},
                                {"llama", build_llama},
                                {"minimax_m2", build_minimax_m2},
                                {"ministral3", build_llama},
                                {"mistral4", build_deepseek},
                                {"mixtral", build_llama},
                                {"modernbert", build_modernbert},
                                {"nemotron_h", build_nemotron_h},
                                {"olmo2", build_olmo2},
                                {"phi3", build_llama},
                                {"qwen2", build_llama},
                                {"qwen2_moe", build_llama},
                                {"qwen3", build_qwen3},
                                {"qwen3_5", build_qwen3_5},
                                {"qwen3_5_moe", build_qwen3_5},
                                {"qwen3_moe", build_qwen3},
                                {"qwen3_next", build_qwen3_5},
                                {"roberta", build_bert},
                                {"seed_oss", build_llama},
                                {"smollm3", build_llama}};

Result<const Family*> find_family(const formats::ModelConfig& config) {
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.name == config.family) return &family;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  return fail(ErrorKind::kUnsupported,
              "Models of family \"%s\" can be read and converted but not run yet; families that run are: %s.",
              config.family.c_str(), known.c_str());
}

}  // namespace

Result<void> check_has_forward_pass(const formats::ModelConfig& config) {
  DP_CHECK(find_family(config));
  return {};
}

Result<graph::Graph> build_graph(const formats::ModelConfig& config, bool drafts) {
  DP_TRY(const Family* family, find_family(config));
  graph::Graph graph;
  Builder builder{.graph = graph, .config = config, .drafts = drafts};
  family->build(builder);
  DP_CHECK_WHILE(graph.error(), "building the graph of %s", config.family.c_str());
  return graph;
}

}  // namespace doppler::families
