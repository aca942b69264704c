// Hugging Face repositories: the name as a user writes it, the list of files that the hub's API gives, and the choice
// of the files that make up the model. No network here (download_list.h has that); the answers are from a stranger.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace doppler::store {

struct HubName {
  std::string repo;      // "org/name"
  std::string selector;  // a file or a quantisation ("Q4_K_M"); empty: the usual choice
  std::string revision;  // branch, tag or commit; empty: "main"
  std::string text() const;
};
// "org/name", "org/name:Q4_K_M", "org/name:file.gguf@v1.0". Nothing: it is no such name.
std::optional<HubName> parse_hub_name(std::string_view text);
// The same from the path of a page: "/org/name", "/org/name:Q4_K_M", "/org/name/blob/main/file.gguf",
// ".../resolve/...", ".../tree/...".
std::optional<HubName> hub_name_of_page(std::string_view path);
// The path that follows the hub's name, which "http://" or "https://" may precede: "/org/name:Q4_K_M" for
// "hf.co/org/name:Q4_K_M". Nothing: it is no address of the hub.
std::optional<std::string_view> path_on_hub(std::string_view text);

struct HubFile {
  std::string path;  // in the repository; may have folders
  std::optional<uint64_t> bytes;
  std::optional<Sha256> sha256;  // of large files
};
struct HubRepo {
  std::string commit;
  std::vector<HubFile> files;
};
// The answer of /api/models/<repo>/revision/<revision>?blobs=true.
Result<HubRepo> parse_hub_repo(std::string_view text);

struct HubChoice {
  std::string kind;   // "gguf", "rdrr" or "huggingface"
  std::string entry;  // base name of the file to load; empty: the folder
  std::string name;   // for the store
  std::vector<HubFile> files;
};
// A text of the repository, whose path HubRepo::files has.
using ReadHubText = std::function<Result<std::string>(const std::string& path)>;
// A folder of safetensors gives the files that its index names, and those in the folders that modules.json names; both
// are read. Errors name what there is to choose from.
Result<HubChoice> choose_files(const HubRepo& repo, const HubName& name, const ReadHubText& read);

std::string base_name(std::string_view path);
// "model-00002-of-00003.gguf": the stem before the numbers; empty: the file is not one of several.
std::string split_stem(std::string_view file);

}  // namespace doppler::store
