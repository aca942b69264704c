// Texts of paths, and all that is done to whole folders; file.h has open files and single names. Nothing above base
// uses std::filesystem, since on Windows it takes texts for the system's code page (tools/check_layers holds this).
// Paths are UTF-8. A function that fails leaves the reason in errno. Not part of the WebAssembly build.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace doppler {

// Texts only; nobody looks at the disk. The result has / between its parts.
std::string parent_path(const std::string& path);  // "a" of "a/b.c" and of "a/", "" of "b.c", "/" of "/"
std::string file_name(const std::string& path);    // "b.c" of "a/b.c", "" of "a/"
std::string file_stem(const std::string& path);    // "b" of "a/b.c", ".c" of "a/.c"
std::string normal_path(const std::string& path);  // "b/c/" of "a/../b//c/."
std::string joined_path(const std::string& folder, const std::string& name);

// They follow links, and are false if there is nothing, or if the system does not tell.
bool is_folder(const std::string& path);
bool is_regular_file(const std::string& path);
// Empty: it is not there, or is no file.
std::optional<uint64_t> file_bytes(const std::string& path);

// With all above it. Succeeds if it is there already.
bool make_folders(const std::string& path);
// A file or a whole folder; succeeds if there is nothing. A link is removed, never what it leads to.
bool remove_tree(const std::string& path);
bool copy_file(const std::string& from, const std::string& to, bool replaces);
// A second name of one file. Not all file systems have them.
bool link_file(const std::string& from, const std::string& to);

struct FoundName {
  std::string path;  // below the folder that is walked
  FileKind kind;     // of what a link leads to
};
// Calls `visit` for each name in the folder, in the system's order, and goes into those folders for which it returns
// true. Links to folders are not entered. False: some were not read.
bool walk_folder(const std::string& folder, const std::function<bool(const FoundName&)>& visit);
// The names in the folder itself, in the system's order. False: `names` has those that were read before.
bool list_folder(const std::string& folder, std::vector<std::string>& names);

}  // namespace doppler
