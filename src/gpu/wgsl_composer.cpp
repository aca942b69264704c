// Composition of WGSL; see wgsl_composer.h. Everything that Tint and naga want differently is in
// directives().
#include "gpu/wgsl_composer.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/number_text.h"
#include "gpu/wgsl_files.h"

namespace doppler::gpu {
namespace {

constexpr std::string_view kImport = "//!import ";
constexpr std::string_view kAs = " as ";
constexpr std::string_view kSameWeights = " with the same weights";

std::string directives(const Caps& caps, const ComposeOptions& options) {
  std::string text;
  if (options.f16 || options.matrix) text += "enable f16;\n";
  if ((options.subgroups || options.matrix) && caps.dialect == WgslDialect::kTint) {
    // naga knows neither line: it has subgroups without `enable` and analyses no uniformity. Our kernels use
    // subgroup operations under conditions that are uniform in a way Tint cannot prove.
    text += "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n";
  }
  if (options.matrix) {
    text +=
        "enable chromium_experimental_subgroup_matrix;\n"
        "diagnostic(off, chromium.subgroup_matrix_uniformity);\n";
  }
  return text;
}

Result<std::string> literal(const WgslConst& constant) {
  const std::string name(constant.name);
  const double value = constant.value;
  const auto wrong = [&](const char* type) {
    return fail(ErrorKind::kInternal, "Constant %s (%g) is not a %s.", name.c_str(), value, type);
  };
  switch (constant.type) {
    case WgslConst::Type::kBool:
      return std::string(value != 0 ? "true" : "false");
    case WgslConst::Type::kU32:
      if (!(value >= 0 && value <= UINT32_MAX) || value != std::floor(value)) return wrong("u32");
      return format_text("%lluu", static_cast<unsigned long long>(value));
    case WgslConst::Type::kI32:
      if (!(value >= INT32_MIN && value <= INT32_MAX) || value != std::floor(value)) return wrong("i32");
      return format_text("i32(%lld)", static_cast<long long>(value));
    case WgslConst::Type::kF32:
      break;
  }
  const auto narrow = static_cast<float>(value);
  if (!std::isfinite(narrow)) return wrong("finite f32");
  return "f32(" + shortest_text(narrow) + ")";
}

Result<std::string> const_prelude(std::span<const WgslConst> consts) {
  static constexpr const char* kTypes[] = {"u32", "i32", "f32", "bool"};
  std::string text;
  for (const WgslConst& constant : consts) {
    DP_TRY(const std::string value, literal(constant));
    text += "const " + std::string(constant.name) + ": " + kTypes[static_cast<size_t>(constant.type)] +
            " = " + value + ";\n";
  }
  return text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The names a text declares at module scope: lines that begin with fn, struct, const, alias or var.
std::vector<std::string> declared_names(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string& line : split(text, '\n')) {
    for (const std::string_view keyword : {"fn ", "struct ", "const ", "alias ", "var<"}) {
      if (!line.starts_with(keyword)) continue;
      size_t at = keyword.size();
      if (keyword == "var<") at = line.find('>') + 1;
      while (at < line.size() && line[at] == ' ') ++at;
      size_t end = at;
      while (end < line.size() && is_word(line[end])) ++end;
      names.push_back(line.substr(at, end - at));
    }
  }
  return names;
}

// Every whole word of `text` that is one of `names`, with `prefix` before it; members (".name") stay.
std::string with_prefix(std::string_view text, const std::vector<std::string>& names,
                        std::string_view prefix) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == at) {
      out += text[at++];
      continue;
    }
    const std::string word(text.substr(at, end - at));
    const bool is_member = at > 0 && text[at - 1] == '.';
    if (!is_member && std::find(names.begin(), names.end(), word) != names.end()) out += prefix;
    out += word;
    at = end;
  }
  return out;
}

class Composer {
 public:
  explicit Composer(const ComposeOptions& options, std::string prefix = "")
      : options_(options), prefix_(std::move(prefix)) {}

  // Appends what `name` imports, then its own text; every file once.
  Result<void> add(std::string_view name) {
    if (std::find(added_.begin(), added_.end(), name) != added_.end()) return {};
    added_.emplace_back(name);
    DP_TRY(const std::string text, read(name));
    std::string own;
    for (const std::string& line : split(text, '\n')) {
      if (!line.starts_with(kImport)) {
        own += line + "\n";
        continue;
      }
      std::string_view wanted = trim(std::string_view(line).substr(kImport.size()));
      if (const size_t as = wanted.find(kAs); as != wanted.npos) {
        std::string_view prefix = wanted.substr(as + kAs.size());
        const bool same_weights = prefix.ends_with(kSameWeights);
        if (same_weights) prefix.remove_suffix(kSameWeights.size());
        DP_CHECK_WHILE(add_again(wanted.substr(0, as), std::string(trim(prefix)), same_weights),
                       "importing it again into %s.wgsl", std::string(name).c_str());
        continue;
      }
      DP_CHECK_WHILE(add(substitute(wanted)), "importing it into %s.wgsl", std::string(name).c_str());
    }
    text_ += "// ---- " + std::string(name) + ".wgsl\n" + own;
    return {};
  }

  std::string take() { return std::move(text_); }

 private:
  // Adds a second copy of a fragment and its imports, under other names, for a kernel that reads two formats. A slot
  // that has a substitution under the prefix takes that one. The bindings of weights are the second copy's own, unless
  // the import ends in "with the same weights".
  Result<void> add_again(std::string_view name, const std::string& prefix, bool same_weights) {
    Composer again(options_, prefix);
    DP_CHECK(again.add(again.substitute(name)));
    const std::string text = again.take();
    std::vector<std::string> names = declared_names(text);
    if (!same_weights) names.insert(names.end(), {"weights", "scales"});
    text_ += with_prefix(text, names, prefix);
    return {};
  }

  std::string_view substitute(std::string_view name) const {
    for (const auto& [slot, fragment] : options_.substitutions) {
      if (!prefix_.empty() && slot == prefix_ + std::string(name)) return fragment;
    }
    for (const auto& [slot, fragment] : options_.substitutions) {
      if (slot == name) return fragment;
    }
    return name;
  }

  static Result<std::string> read(std::string_view name) {
    DP_TRY(std::optional<std::string> on_disk, read_wgsl_from_disk(name));
    if (on_disk) return std::move(*on_disk);
    if (const WgslSource* source = find_wgsl(name)) return std::string(source->text);
    std::vector<std::string> names;
    for (const WgslSource& source : embedded_wgsl()) {
      names.emplace_back(source.path.substr(0, source.path.rfind('.')));
    }
    const auto close = nearest(name, names);
    return fail(ErrorKind::kInternal, "There is no WGSL file \"%s\"%s%s.", std::string(name).c_str(),
                close ? "; the nearest name is " : "", close ? close->c_str() : "");
  }

  const ComposeOptions& options_;
  const std::string prefix_;
  std::vector<std::string> added_;
  std::string text_;
};

}  // namespace

Result<std::string> compose_wgsl(std::string_view entry, const Caps& caps, const ComposeOptions& options) {
  if (options.f16 && !caps.f16) {
    return fail(ErrorKind::kUnsupported, "Kernel %s needs f16, which this device lacks.",
                std::string(entry).c_str());
  }
  if (options.subgroups && !caps.subgroups) {
    return fail(ErrorKind::kUnsupported, "Kernel %s needs subgroups, which this device lacks.",
                std::string(entry).c_str());
  }
  if (options.matrix && !caps.matrix_f16) {
    return fail(ErrorKind::kUnsupported, "Kernel %s needs f16 subgroup matrices, which this device lacks.",
                std::string(entry).c_str());
  }
  Composer composer(options);
  DP_CHECK(composer.add(entry));
  DP_TRY(const std::string prelude, const_prelude(options.consts));
  return directives(caps, options) + prelude + composer.take();
}

}  // namespace doppler::gpu
