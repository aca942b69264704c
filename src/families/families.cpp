#include "families/families.h"

#include "base/text.h"
#include "families/family.h"

namespace doppler::families {
namespace {

struct Family {
  std::string_view name;  // as formats/architectures names it
  void (*build)(Builder& b);
};

constexpr Family kFamilies[] = {{"gemma3", build_gemma3}, {"llama", build_llama}, {"qwen3", build_qwen3}};

}  // namespace

Result<graph::Graph> build_graph(const model::ModelConfig& config) {
  for (const Family& family : kFamilies) {
    if (family.name != config.family) continue;
    graph::Graph graph;
    Builder builder{.graph = graph, .config = config};
    family.build(builder);
    DP_CHECK_WHILE(graph.error(), "building the graph of %s", config.family.c_str());
    return graph;
  }
  return fail(ErrorKind::kUnsupported, "The family \"%s\" has no forward pass yet.",
              printable(config.family).c_str());
}

}  // namespace doppler::families
