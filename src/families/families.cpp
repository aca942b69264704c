#include "families/families.h"

#include <algorithm>

#include "base/text.h"
#include "families/family.h"

namespace doppler::families {
namespace {

struct Family {
  std::string_view name;  // as formats/architectures names it
  void (*build)(Builder& b);
};

#define FAMILY(name) {#name, build_##name},
#define FAMILY_LIKE(name, page) {#name, build_##page},
constexpr Family kFamilies[] = {
#include "formats/architectures/family_list.h"
};

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
  if (formats::is_whole(config)) return graph;
  return graph.layers(config.part.first, std::min(config.part.end, config.n_layers));
}

Result<graph::Graph> build_image_graph(const formats::ModelConfig& config,
                                       const formats::ModelConfig& tower) {
  DP_TRY(const Family* family, find_family(config));
  graph::Graph graph;
  Builder builder{.graph = graph,
                  .config = config,
                  .images = true,
                  .deepstack = static_cast<uint32_t>(tower.tower.deepstack.size())};
  family->build(builder);
  DP_CHECK_WHILE(graph.error(), "building the graph of %s with pictures", config.family.c_str());
  return graph;
}

}  // namespace doppler::families
