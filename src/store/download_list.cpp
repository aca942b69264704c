#include "store/download_list.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/folders.h"
#include "base/task.h"
#include "base/text.h"
#include "formats/rdrr/integrity.h"
#include "formats/rdrr/manifest.h"
#include "formats/recognise.h"
#include "store/hub.h"
#include "store/url.h"

namespace doppler::store {
namespace {

constexpr uint64_t kMostHubAnswer = 32ull << 20;  // 10,000 files at 3 KB each
constexpr uint64_t kMostHubText = 64ull << 20;    // an index of 50,000 tensors has 5 MB
constexpr char kManifestUrlEnd[] = "/manifest.json";

// Files of an RDRR model below `base` ("https://.../model" or a folder), from its manifest's tables.
Result<void> add_rdrr_files(DownloadList& list, const std::string& base, const std::string& text) {
  const std::string name = base + "/" + formats::kRdrrManifestName;
  const std::string shown = looks_like_url(name) ? shown_url(name) : name;
  DP_TRY(const formats::RdrrParsed parsed, formats::parse_rdrr_manifest(text, shown));
  auto check = formats::check_rdrr_manifest_hash(text, shown);
  check.start();
  DP_CHECK(check.take());
  list.files.push_back({.file = formats::kRdrrManifestName,
                        .from = name,
                        .bytes = text.size(),
                        .sha256 = sha256(text_bytes(text))});
  const auto add = [&](const std::string& file, uint64_t bytes, const Sha256& hash) {
    list.files.push_back({.file = file,
                          .from = base + "/" + (list.is_local ? file : percent_encoded(file)),
                          .bytes = bytes,
                          .sha256 = hash});
  };
  for (const auto& asset : parsed.manifest.assets) add(asset.file, asset.bytes, asset.sha256);
  for (const auto& shard : parsed.manifest.shards) add(shard.file, shard.bytes, shard.sha256);
  return {};
}

Result<void> refuse_sha256(const ListOptions& options, const char* what) {
  if (!options.sha256) return {};
  return fail(ErrorKind::kInvalidInput, "Flag --sha256 is for a single file, but %s has several.", what);
}

std::string stem_of_gguf(const std::string& file) {
  const std::string stem = split_stem(file);
  return stem.empty() ? file_stem(file) : stem;
}

// "x-00001-of-00003.gguf" -> all three.
std::vector<std::string> parts_of(const std::string& file) {
  const std::string stem = split_stem(file);
  const auto count = stem.empty() ? std::nullopt : parse_decimal(file.substr(file.size() - 10, 5));
  if (!count || *count == 0) return {file};
  std::vector<std::string> out;
  for (uint64_t i = 1; i <= *count; ++i) {
    out.push_back(format_text("%s-%05u-of-%05u.gguf", stem.c_str(), static_cast<unsigned>(i),
                              static_cast<unsigned>(*count)));
  }
  return out;
}

Result<DownloadList> list_url(const std::string& source, const ListOptions& options, Web& web) {
  DP_TRY(Url url, parse_url(source));
  DownloadList list{.source = shown_url(source)};
  const std::string query = source.substr(std::min(source.size(), source.find_first_of("?#")));
  std::string bare = source.substr(0, source.size() - query.size());
  if (url.path.ends_with('/') || url.path.ends_with(kManifestUrlEnd)) {
    if (url.path.ends_with('/')) bare += "manifest.json";
    DP_CHECK(refuse_sha256(options, "an RDRR model"));
    list.kind = "rdrr";
    DP_TRY(const std::string text, web.text(bare + query, formats::kRdrrMaxManifestBytes));
    const std::string base = bare.substr(0, bare.rfind('/'));
    DP_CHECK(add_rdrr_files(list, base, text));
    DP_TRY(list.name, checked_name(options.name, store_name_of(base_name(base)), source));
    return list;
  }
  DP_TRY(const std::string file, file_name_of(url));
  list.kind = "gguf";
  const std::vector<std::string> parts = parts_of(file);
  if (parts.size() > 1) DP_CHECK(refuse_sha256(options, "a split GGUF file"));
  const std::string base = bare.substr(0, bare.rfind('/') + 1);
  for (const std::string& part : parts) {
    const std::string from = parts.size() == 1 ? source : base + percent_encoded(part) + query;
    list.files.push_back({.file = part, .from = from, .bytes = {}, .sha256 = options.sha256});
  }
  list.entry = parts[0];
  DP_TRY(list.name, checked_name(options.name, store_name_of(stem_of_gguf(file)), source));
  return list;
}

Result<DownloadList> list_hub(const HubName& name, const ListOptions& options, Web& web) {
  const std::string revision = name.revision.empty() ? "main" : name.revision;
  const std::string address = options.hub + "/api/models/" + percent_encoded(name.repo) + "/revision/" +
                              percent_encoded(revision) + "?blobs=true";
  DP_TRY(const std::string answer, web.text(address, kMostHubAnswer));
  auto parsed = parse_hub_repo(answer);
  if (!parsed)
    return forward(std::move(parsed).error().add_while("reading what the hub says of " + name.repo));
  const HubRepo& repo = *parsed;
  // By commit, so that all files are of one state of the repository.
  const std::string base =
      options.hub + "/" + percent_encoded(name.repo) + "/resolve/" + percent_encoded(repo.commit);
  const auto read = [&](const std::string& path) {
    return web.text(base + "/" + percent_encoded(path), kMostHubText);
  };
  DP_TRY(const HubChoice choice, choose_files(repo, name, read));
  DownloadList list{
      .source = name.text(), .revision = repo.commit, .kind = choice.kind, .entry = choice.entry};
  DP_TRY(list.name, checked_name(options.name, choice.name, list.source));
  if (choice.files.size() != 1) DP_CHECK(refuse_sha256(options, "this repository"));
  if (choice.kind == "rdrr") {
    DP_TRY(const std::string text, web.text(base + kManifestUrlEnd, formats::kRdrrMaxManifestBytes));
    DP_CHECK(add_rdrr_files(list, base, text));
    return list;
  }
  for (const HubFile& file : choice.files) {
    list.files.push_back({.file = choice.kind == "huggingface" ? file.path : base_name(file.path),
                          .from = base + "/" + percent_encoded(file.path),
                          .bytes = file.bytes,
                          .sha256 = options.sha256 ? options.sha256 : file.sha256});
  }
  return list;
}

Result<std::string> read_local(const std::string& path) {
  DP_TRY(const File file, File::open(path));
  DP_TRY(const uint64_t bytes, file.size());
  constexpr uint64_t kMost = std::max<uint64_t>(kMostHubText, formats::kRdrrMaxManifestBytes);
  if (bytes > kMost) {
    return fail(ErrorKind::kInvalidInput, "%s has %s; such a text has at most %s.", file.path().c_str(),
                format_bytes(bytes).c_str(), format_bytes(kMost).c_str());
  }
  std::string text(bytes, '\0');
  DP_TRY(const size_t count, file.read_at({reinterpret_cast<uint8_t*>(text.data()), text.size()}, 0));
  text.resize(count);
  return text;
}

Result<DownloadList> list_local(const std::string& source, const ListOptions& options) {
  const auto real = real_path(source);
  if (!real) return fail(ErrorKind::kIo, "Cannot read %s: %s.", source.c_str(), std::strerror(errno));
  const std::string& path = *real;
  const std::string manifest = joined_path(path, formats::kRdrrManifestName);
  DownloadList list{.source = path, .is_local = true};
  std::string proposed;
  if (is_regular_file(path)) {
    const std::string file = file_name(path);
    const std::vector<std::string> parts = parts_of(file);
    list.kind = "gguf";
    list.entry = parts[0];
    if (parts.size() > 1) DP_CHECK(refuse_sha256(options, "a split GGUF file"));
    for (const std::string& part : parts) {
      list.files.push_back({.file = part,
                            .from = joined_path(parent_path(path), part),
                            .bytes = {},
                            .sha256 = options.sha256});
    }
    proposed = stem_of_gguf(file);
  } else if (is_regular_file(manifest)) {
    DP_CHECK(refuse_sha256(options, "an RDRR model"));
    list.kind = "rdrr";
    DP_TRY(const std::string text, read_local(manifest));
    DP_CHECK(add_rdrr_files(list, path, text));
    proposed = file_name(path);
  } else if (is_folder(path)) {
    DP_CHECK(refuse_sha256(options, "a folder"));
    HubRepo folder;  // the same choice as among a repository's files
    // The model's files, and those of its modules a folder deeper.
    walk_folder(path, [&](const FoundName& found) {
      const size_t slash = found.path.find('/');
      const bool is_module = slash != std::string::npos;
      const std::string name = found.path.substr(is_module ? slash + 1 : 0);
      const bool is_wanted = !is_module || name == "config.json" || name == "model.safetensors";
      if (is_wanted && found.kind == FileKind::kRegular)
        folder.files.push_back({.path = found.path, .bytes = {}, .sha256 = {}});
      return !is_module;
    });
    std::ranges::sort(folder.files, {}, &HubFile::path);
    const auto read = [&](const std::string& file) { return read_local(joined_path(path, file)); };
    DP_TRY(const HubChoice choice,
           choose_files(folder, {.repo = file_name(path), .selector = {}, .revision = {}}, read));
    list.kind = choice.kind;
    list.entry = choice.entry;
    for (const HubFile& file : choice.files) {
      list.files.push_back(
          {.file = file.path, .from = joined_path(path, file.path), .bytes = {}, .sha256 = {}});
    }
    proposed = file_name(path);
  } else {
    return fail(ErrorKind::kInvalidInput, "%s is neither a file nor a folder.", source.c_str());
  }
  for (ListedFile& file : list.files) {
    const auto bytes = file_bytes(file.from);
    if (!bytes) return fail(ErrorKind::kIo, "Cannot read %s: %s.", file.from.c_str(), std::strerror(errno));
    if (file.bytes && *file.bytes != *bytes) {
      return fail(ErrorKind::kInvalidInput, "%s has %llu bytes, but its manifest says %llu.",
                  file.from.c_str(), static_cast<unsigned long long>(*bytes),
                  static_cast<unsigned long long>(*file.bytes));
    }
    file.bytes = bytes;
  }
  DP_TRY(list.name, checked_name(options.name, store_name_of(proposed), source));
  return list;
}

}  // namespace

Result<std::string> checked_name(const std::string& wanted, const std::string& proposed,
                                 const std::string& source) {
  const std::string name = wanted.empty() ? proposed : wanted;
  if (is_store_name(name)) return name;
  if (!wanted.empty()) {
    return fail(ErrorKind::kInvalidInput,
                "Flag --name was given \"%s\"; allowed are letters, digits and . _ - after a letter or "
                "digit, at most "
                "128.",
                printable(wanted).c_str());
  }
  return fail(ErrorKind::kInvalidInput, "Nothing in %s makes a name for the store; give one with --name.",
              printable(source, 300).c_str());
}

Result<DownloadList> list_downloads(const std::string& source, const ListOptions& options,
                                    const ModelStore& store, Web& web) {
  if (is_there(source)) return list_local(source, options);
  if (const auto path = path_on_hub(source)) {
    if (const auto name = hub_name_of_page(*path)) return list_hub(*name, options, web);
  }
  if (looks_like_url(source)) {
    DP_TRY(const Url url, parse_url(source));
    const auto page = url.origin() == options.hub ? hub_name_of_page(url.path) : std::nullopt;
    return page ? list_hub(*page, options, web) : list_url(source, options, web);
  }
  if (const auto name = parse_hub_name(source)) return list_hub(*name, options, web);
  if (is_store_name(source)) {
    const auto unfinished = read_unfinished(store.folder(), source);
    if (unfinished && unfinished->source != source) {
      ListOptions same = options;
      if (same.name.empty()) same.name = source;
      return list_downloads(unfinished->source, same, store, web);
    }
  }
  return fail(ErrorKind::kInvalidInput,
              "\"%s\" is no file or folder here, no address (https://...), no Hugging Face repository "
              "(org/name[:file or quantisation][@revision]) and no unfinished download.",
              printable(source, 300).c_str());
}

}  // namespace doppler::store
