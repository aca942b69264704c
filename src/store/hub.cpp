#include "store/hub.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "base/json.h"
#include "base/text.h"
#include "formats/embedding_modules.h"
#include "formats/safetensors/safetensors_index.h"
#include "store/model_store.h"
#include "store/url.h"

namespace doppler::store {
namespace {

constexpr size_t kMostFiles = 10'000;
constexpr size_t kHubMostPathBytes = 1024;
constexpr size_t kShownChoices = 30;
// The defaults if the user names no quantisation: small enough for most devices, near the original in quality.
constexpr const char* kUsualQuantisations[] = {"Q4_K_M", "Q4_0", "Q8_0"};
// The texts of a Hugging Face folder that formats/ and tokenizer/ read.
constexpr const char kModulesName[] = "modules.json";
constexpr const char* kFolderTexts[] = {
    "config.json",        "tokenizer.json",          "tokenizer_config.json",
    "tokenizer.model",    "generation_config.json",  "chat_template.jinja",
    "chat_template.json", "special_tokens_map.json", "vocab.json",
    "merges.txt",         "added_tokens.json",       formats::kSafetensorsIndexName,
    kModulesName};
// Names of the hub in addresses, whichever server HF_ENDPOINT names.
constexpr std::string_view kHubHosts[] = {"huggingface.co", "hf.co", "www.huggingface.co"};

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 128 && text[0] != '.' && text[0] != '-' &&
         std::ranges::all_of(text, [](unsigned char c) {
           return c < 0x80 && (std::isalnum(c) || c == '.' || c == '_' || c == '-');
         });
}

// Folders of words: "a/b/c.gguf".
bool is_clean_path(std::string_view path) {
  if (path.empty() || path.size() > kHubMostPathBytes) return false;
  return std::ranges::none_of(split(path, '/'), [](const std::string& part) {
    return part.empty() || part == "." || part == ".." ||
           std::ranges::any_of(part, [](unsigned char c) { return c < ' ' || c == 0x7f || c == '\\'; });
  });
}

bool is_gguf(const HubFile& file) { return ascii_lower(file.path).ends_with(".gguf"); }

// A part of a name between separators: "q4_k_m" in "model-q4_k_m.gguf" and "model_Q4_K_M.gguf", not in
// "model-iq4_k_m2.gguf". No underscore follows: "q4_k" is another quantisation than "q4_k_m".
bool has_quantisation(std::string_view path, std::string_view quantisation) {
  const std::string text = ascii_lower(path), word = ascii_lower(quantisation);
  const auto is_one_of = [&](std::string_view edges, size_t at) {
    return at >= text.size() || edges.find(text[at]) != std::string_view::npos;
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || is_one_of("-_./", at - 1)) && is_one_of("-./", at + word.size())) return true;
  }
  return false;
}

std::string names_of(const std::vector<HubFile>& files) {
  std::string out;
  for (size_t i = 0; i < files.size() && i < kShownChoices; ++i) {
    out += (i ? ", " : "") + printable(files[i].path);
  }
  if (files.size() > kShownChoices) out += format_text(" and %zu more", files.size() - kShownChoices);
  return out;
}

// A vision tower's file lies beside the models and is none.
bool is_projector(const HubFile& file) {
  return ascii_lower(base_name(file.path)).find("mmproj") != std::string::npos;
}

// The file that makes a model see; null: there is none. A model uses only one, so f16 goes before other formats.
const HubFile* choose_projector(const std::vector<HubFile>& ggufs) {
  const HubFile* out = nullptr;
  for (const char* usual : {"", "f32", "q8_0", "bf16", "f16"}) {
    for (const HubFile& file : ggufs) {
      if (is_projector(file) && (*usual == '\0' || has_quantisation(file.path, usual))) out = &file;
    }
  }
  return out;
}

// The other parts of a split file come with the first, and the vision tower's file comes with any model.
Result<HubChoice> choose_gguf(const std::vector<HubFile>& ggufs, const HubFile& chosen) {
  HubChoice out{.kind = "gguf", .entry = base_name(chosen.path), .name = {}, .files = {chosen}};
  const std::string stem = split_stem(chosen.path);
  if (!stem.empty()) {
    out.files.clear();
    std::ranges::copy_if(ggufs, std::back_inserter(out.files),
                         [&](const HubFile& file) { return split_stem(file.path) == stem; });
    std::ranges::sort(out.files, {}, &HubFile::path);
    out.entry = base_name(out.files[0].path);
  }
  const std::string file = stem.empty() ? out.entry.substr(0, out.entry.size() - 5) : base_name(stem);
  out.name = store_name_of(file);
  if (const HubFile* projector = choose_projector(ggufs); projector && !is_projector(chosen))
    out.files.push_back(*projector);
  return out;
}

// One file (or one split one) that has the quantisation in its name.
std::vector<HubFile> with_quantisation(const std::vector<HubFile>& ggufs, std::string_view quantisation) {
  std::vector<HubFile> out;
  for (const HubFile& file : ggufs) {
    const std::string stem = split_stem(file.path);
    const bool is_seen =
        !stem.empty() && std::ranges::any_of(out, [&](const auto& f) { return split_stem(f.path) == stem; });
    if (!is_seen && has_quantisation(file.path, quantisation)) out.push_back(file);
  }
  return out;
}

const HubFile* find_file(const HubRepo& repo, std::string_view path) {
  const auto found = std::ranges::find(repo.files, path, &HubFile::path);
  return found == repo.files.end() ? nullptr : &*found;
}

// The weights that the index names; without an index the one usual file, or else all there are.
Result<std::vector<HubFile>> choose_weights(const HubRepo& repo, const HubName& name,
                                            const ReadHubText& read) {
  std::vector<HubFile> out;
  if (find_file(repo, formats::kSafetensorsIndexName)) {
    DP_TRY(const std::string text, read(formats::kSafetensorsIndexName));
    DP_TRY(const formats::SafetensorsIndex index,
           formats::parse_safetensors_index(text, formats::kSafetensorsIndexName));
    for (const std::string& path : index.files) {
      const HubFile* file = find_file(repo, path);
      if (!file) {
        return fail(ErrorKind::kInvalidInput, "%s of %s names %s, which the repository lacks.",
                    formats::kSafetensorsIndexName, name.repo.c_str(), printable(path).c_str());
      }
      out.push_back(*file);
    }
    return out;
  }
  if (const HubFile* usual = find_file(repo, "model.safetensors")) return std::vector{*usual};
  std::ranges::copy_if(repo.files, std::back_inserter(out), [](const HubFile& file) {
    return file.path.ends_with(".safetensors") && file.path.find('/') == std::string::npos;
  });
  return out;
}

// Files in the folders of an embedding model's modules.
Result<std::vector<HubFile>> choose_modules(const HubRepo& repo, const ReadHubText& read) {
  std::vector<HubFile> out;
  if (!find_file(repo, kModulesName)) return out;
  DP_TRY(const std::string text, read(kModulesName));
  DP_TRY(const Json modules, parse_json(text, kModulesName, 32));
  for (const std::string& folder : formats::module_folders(modules)) {
    for (const char* file : {"config.json", "model.safetensors"}) {
      if (const HubFile* found = find_file(repo, folder + "/" + file)) out.push_back(*found);
    }
  }
  return out;
}

Result<HubChoice> choose_folder(const HubRepo& repo, const HubName& name, const ReadHubText& read) {
  HubChoice out{.kind = "huggingface", .entry = {}, .name = store_name_of(base_name(name.repo)), .files = {}};
  DP_TRY(const std::vector<HubFile> weights, choose_weights(repo, name, read));
  if (weights.empty() || !find_file(repo, "config.json")) {
    return fail(ErrorKind::kInvalidInput,
                "The repository %s has neither a GGUF file nor safetensors with a config.json; it has: %s.",
                name.repo.c_str(), names_of(repo.files).c_str());
  }
  for (const HubFile& file : repo.files) {
    if (std::ranges::find(kFolderTexts, file.path) != std::end(kFolderTexts)) out.files.push_back(file);
  }
  DP_TRY(const std::vector<HubFile> modules, choose_modules(repo, read));
  for (const auto* files : {&modules, &weights}) {
    out.files.insert(out.files.end(), files->begin(), files->end());
  }
  return out;
}

}  // namespace

std::string HubName::text() const {
  return repo + (selector.empty() ? "" : ":" + selector) + (revision.empty() ? "" : "@" + revision);
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string split_stem(std::string_view file) {
  constexpr size_t kTail = std::string_view("-00001-of-00003.gguf").size();
  if (file.size() <= kTail) return {};
  const std::string_view tail = file.substr(file.size() - kTail);
  const auto digits = [&](size_t at) {
    return std::ranges::all_of(tail.substr(at, 5), [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  if (tail[0] != '-' || !digits(1) || tail.substr(6, 4) != "-of-" || !digits(10) ||
      tail.substr(15) != ".gguf")
    return {};
  return std::string(file.substr(0, file.size() - kTail));
}

std::optional<HubName> parse_hub_name(std::string_view text) {
  HubName out;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  size_t end = std::min(text.find_first_of(":@", slash), text.size());
  const std::string_view org = text.substr(0, slash), repo = text.substr(slash + 1, end - slash - 1);
  if (!is_word(org) || !is_word(repo)) return {};
  out.repo = std::string(text.substr(0, end));
  if (end < text.size() && text[end] == ':') {
    const size_t at = std::min(text.find('@', end), text.size());
    out.selector = std::string(text.substr(end + 1, at - end - 1));
    if (!is_clean_path(out.selector)) return {};
    end = at;
  }
  if (end < text.size()) {
    out.revision = std::string(text.substr(end + 1));
    if (!is_clean_path(out.revision)) return {};
  }
  return out;
}

std::optional<std::string_view> path_on_hub(std::string_view text) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (ascii_lower(text.substr(0, scheme.size())) == scheme) {
      text.remove_prefix(scheme.size());
      break;
    }
  }
  for (const std::string_view host : kHubHosts) {
    if (ascii_lower(text.substr(0, host.size())) == host && text.substr(host.size()).starts_with('/'))
      return text.substr(0, text.find_first_of("?#")).substr(host.size());
  }
  return {};
}

std::optional<HubName> hub_name_of_page(std::string_view path) {
  const std::optional<std::string> decoded = percent_decoded(path);
  if (!decoded || !decoded->starts_with('/')) return {};
  if (auto name = parse_hub_name(std::string_view(*decoded).substr(1));
      name && !name->repo.ends_with(".gguf"))
    return name;
  std::vector<std::string> parts = split(*decoded, '/');  // the first is empty
  while (!parts.empty() && parts.back().empty()) parts.pop_back();
  if (parts.size() < 3 || !parts[0].empty() || !is_word(parts[1]) || !is_word(parts[2])) return {};
  HubName out{.repo = parts[1] + "/" + parts[2], .selector = {}, .revision = {}};
  if (parts[2].ends_with(".gguf")) return {};  // a file beside the repositories
  if (parts.size() == 3) return out;
  if (parts.size() < 5 || (parts[3] != "blob" && parts[3] != "resolve" && parts[3] != "tree")) return {};
  out.revision = parts[4];
  for (size_t i = 5; i < parts.size(); ++i) out.selector += (i > 5 ? "/" : "") + parts[i];
  if (!is_clean_path(out.revision) || (!out.selector.empty() && !is_clean_path(out.selector))) return {};
  return out;
}

Result<HubRepo> parse_hub_repo(std::string_view text) {
  constexpr const char* kWhat = "The answer of the hub";
  DP_TRY(const Json json, parse_json(text, kWhat, 32));
  HubRepo out;
  DP_TRY(const auto commit, get_string(json, "sha"));
  const Json* files = find(json, "siblings");
  if (!commit || !is_word(*commit) || !files || !files->is_array()) {
    return fail(ErrorKind::kIo, "%s names no commit or no files.", kWhat);
  }
  if (files->size() > kMostFiles) {
    return fail(ErrorKind::kIo, "%s lists %zu files; at most %zu are read.", kWhat, files->size(),
                kMostFiles);
  }
  out.commit = *commit;
  for (const Json& entry : *files) {
    DP_TRY(const auto path, get_string(entry, "rfilename"));
    DP_TRY(const auto size, get_integer(entry, "size"));
    if (!path || !is_clean_path(*path) || (size && *size < 0)) {
      return fail(ErrorKind::kIo, "%s has a file with a wrong name or size (\"%s\").", kWhat,
                  printable(path.value_or("")).c_str());
    }
    HubFile file{.path = *path, .bytes = {}, .sha256 = {}};
    if (size) file.bytes = static_cast<uint64_t>(*size);
    if (const Json* lfs = find(entry, "lfs"); lfs && lfs->is_object()) {
      DP_TRY(const auto digest, get_string(*lfs, "sha256"));
      file.sha256 = sha256_from_hex(digest.value_or(""));
      if (!file.sha256) {
        return fail(ErrorKind::kIo, "%s has no SHA-256 for \"%s\".", kWhat, printable(*path).c_str());
      }
    }
    out.files.push_back(std::move(file));
  }
  return out;
}

Result<HubChoice> choose_files(const HubRepo& repo, const HubName& name, const ReadHubText& read) {
  std::vector<HubFile> all, ggufs;
  std::ranges::copy_if(repo.files, std::back_inserter(all), is_gguf);
  if (!name.selector.empty()) {
    for (const HubFile& file : all) {
      if (file.path == name.selector || base_name(file.path) == name.selector) return choose_gguf(all, file);
    }
  }
  std::ranges::copy_if(all, std::back_inserter(ggufs), std::not_fn(is_projector));
  if (!name.selector.empty()) {
    const std::vector<HubFile> found = with_quantisation(ggufs, name.selector);
    if (found.size() == 1) return choose_gguf(all, found[0]);
    return fail(ErrorKind::kInvalidInput,
                "\"%s\" is the name or quantisation of %s GGUF file in %s; it has: %s.",
                printable(name.selector).c_str(), found.empty() ? "no" : "more than one", name.repo.c_str(),
                names_of(found.empty() ? (ggufs.empty() ? repo.files : ggufs) : found).c_str());
  }
  const bool has_manifest =
      std::ranges::any_of(repo.files, [](const HubFile& file) { return file.path == "manifest.json"; });
  const bool has_shards =
      std::ranges::any_of(repo.files, [](const HubFile& file) { return file.path == "shard_00000.bin"; });
  if (has_manifest && has_shards) {
    return HubChoice{.kind = "rdrr", .entry = {}, .name = store_name_of(base_name(name.repo)), .files = {}};
  }
  if (ggufs.empty()) return choose_folder(repo, name, read);
  for (const char* usual : kUsualQuantisations) {
    const std::vector<HubFile> found = with_quantisation(ggufs, usual);
    if (found.size() == 1) return choose_gguf(all, found[0]);
  }
  const std::string stem = split_stem(ggufs[0].path);
  const bool is_one = ggufs.size() == 1 || (!stem.empty() && std::ranges::all_of(ggufs, [&](const auto& f) {
                        return split_stem(f.path) == stem;
                      }));
  if (is_one) return choose_gguf(all, ggufs[0]);
  return fail(ErrorKind::kInvalidInput,
              "%s has several GGUF files; name one as %s:FILE or %s:QUANTISATION. It has: %s.",
              name.repo.c_str(), name.repo.c_str(), name.repo.c_str(), names_of(ggufs).c_str());
}

}  // namespace doppler::store
