// The folder of the golden cases, and the cases that a test takes. Read next: golden_helpers.h.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace doppler {

inline bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

// Where the archives were unpacked while building, or wherever a copy of this program finds them.
inline std::string golden_dir() {
  return is_set("DOPPLER_GOLDEN_DIR") ? std::getenv("DOPPLER_GOLDEN_DIR") : GOLDEN_DIR;
}

// Tests that take a sample of the cases, since a CPU needs long for each, take all where DOPPLER_GOLDEN_ALL is set.
inline bool takes_all_cases() { return is_set("DOPPLER_GOLDEN_ALL"); }

// The sorted folders of text models with the references of their logits. They are in the archives families_*. The
// archive families_next has other references and a test of its own, draft_test.
inline std::vector<std::filesystem::path> case_folders() {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  for (const auto& archive : fs::directory_iterator(golden_dir())) {
    const std::string name = archive.path().filename().string();
    if (!archive.is_directory() || !name.starts_with("families_") || name == "families_next") continue;
    for (const auto& entry : fs::recursive_directory_iterator(archive.path())) {
      if (entry.path().filename() == "refs.safetensors") folders.push_back(entry.path().parent_path());
    }
  }
  std::ranges::sort(folders);
  return folders;
}

}  // namespace doppler
