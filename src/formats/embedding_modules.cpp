#include "formats/embedding_modules.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

namespace doppler::formats {
namespace {

struct NamedKind {
  std::string_view name;
  ModuleKind kind;
};
constexpr NamedKind kModuleKinds[] = {{"Transformer", ModuleKind::kTransformer},
                                      {"Pooling", ModuleKind::kPooling},
                                      {"Dense", ModuleKind::kDense},
                                      {"Normalize", ModuleKind::kNormalize}};

struct NamedMode {
  const char* key;
  const char* name;
};
constexpr NamedMode kModes[] = {{"pooling_mode_mean_tokens", "mean"},
                                {"pooling_mode_cls_token", "cls"},
                                {"pooling_mode_lasttoken", "last"}};
constexpr const char* kRefusedModes[] = {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
                                         "pooling_mode_weightedmean_tokens"};

}  // namespace

std::vector<std::string> module_folders(const Json& modules) {
  std::vector<std::string> out;
  if (!modules.is_array()) return out;
  for (const Json& module : modules) {
    const auto path = get_string(module, "path");
    if (!path || !*path || (*path)->empty() || std::ranges::find(out, **path) != out.end()) continue;
    out.push_back(**path);
  }
  return out;
}

Result<std::vector<EmbeddingModule>> parse_modules(const Json& modules) {
  if (!modules.is_array()) return fail(ErrorKind::kInvalidInput, "modules.json holds no list.");
  std::vector<EmbeddingModule> out;
  for (const Json& module : modules) {
    DP_TRY(const auto type, get_string(module, "type"));
    DP_TRY(const auto path, get_string(module, "path"));
    const std::string whole = type.value_or("");
    const std::string name = whole.substr(whole.find_last_of('.') + 1);
    const NamedKind* known = nullptr;
    for (const NamedKind& kind : kModuleKinds) {
      if (kind.name == name) known = &kind;
    }
    if (!known) {
      return fail(ErrorKind::kUnsupported,
                  "Module \"%s\" of modules.json is not known; known are Transformer, Pooling, Dense and "
                  "Normalize.",
                  printable(whole).c_str());
    }
    out.push_back({.kind = known->kind, .folder = path.value_or("")});
  }
  return out;
}

Result<std::string> parse_pooling(const Json& config) {
  std::vector<std::string> chosen;
  for (const NamedMode& mode : kModes) {
    DP_TRY(const auto is_on, get_bool(config, mode.key));
    if (is_on.value_or(false)) chosen.emplace_back(mode.name);
  }
  for (const char* mode : kRefusedModes) {
    DP_TRY(const auto is_on, get_bool(config, mode));
    if (is_on.value_or(false))
      return fail(ErrorKind::kUnsupported, "Pooling by \"%s\" is not supported.", mode);
  }
  // Newer files name the mode.
  if (const Json* mode = find(config, "pooling_mode"); mode && mode->is_string()) {
    const auto name = mode->get<std::string>();
    chosen.push_back(name == "lasttoken" ? "last" : name);
  }
  if (chosen.size() == 1 && (chosen[0] == "mean" || chosen[0] == "cls" || chosen[0] == "last"))
    return chosen[0];
  return fail(ErrorKind::kUnsupported,
              "A pooling has %zu modes%s; supported is one of mean, cls and last token.", chosen.size(),
              chosen.empty() ? "" : (" (" + printable(chosen[0]) + ")").c_str());
}

Result<> check_dense(const Json& config) {
  DP_TRY(const auto bias, get_bool(config, "bias"));
  DP_TRY(const auto activation, get_string(config, "activation_function"));
  const std::string name = activation.value_or("Identity");
  if (!bias.value_or(true) && name.ends_with("Identity")) return {};
  return fail(ErrorKind::kUnsupported,
              "A Dense module %s bias and activation \"%s\" is not supported; supported is none of both.",
              bias.value_or(true) ? "with a" : "without", printable(name).c_str());
}

std::string dense_tensor_name(size_t number, const std::string& own_name) {
  return format_text("dense.%zu.", number) + own_name;
}

}  // namespace doppler::formats
