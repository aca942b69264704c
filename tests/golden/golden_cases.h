// The folder of the golden cases, and the cases that a test takes. Read next: golden_helpers.h.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

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

// Those of families_next have other references, and a test of their own: draft_test.
inline bool is_of_drafts(const std::filesystem::path& case_folder) {
  return case_folder.parent_path().filename() == "families_next";
}

}  // namespace doppler
