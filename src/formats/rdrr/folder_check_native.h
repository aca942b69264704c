// The whole of an RDRR folder against its manifest: every file hashed, whatever is wrong named. And the repair of
// it: files that are damaged or missing are taken from another copy, if that copy's are what the manifest says.
// Not part of the WebAssembly build.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/rdrr/hash_files_native.h"
#include "formats/rdrr/manifest.h"

namespace doppler::formats {

struct RdrrFault {
  std::string file;     // in the folder
  std::string problem;  // a sentence
};

struct RdrrFolderCheck {
  std::optional<RdrrManifest> manifest;  // empty: it is damaged, and then nothing else could be checked
  std::vector<RdrrFault> faults;         // empty: every byte is what was written
  std::vector<std::string> unknown;      // members of the manifest that this version does not know
  std::vector<std::string> others;       // files in the folder that the manifest does not name
  uint64_t bytes = 0;                    // of all files that the manifest names

  bool intact() const { return manifest && faults.empty(); }
};

// Error: there is no such folder. threads 0: one a core. progress: bytes so far.
Result<RdrrFolderCheck> check_rdrr_folder(const std::string& folder, unsigned threads,
                                          const HashProgress& progress);

// Copies `file` of the source to the path `to`. Error: it has none, or it cannot be read.
using FetchFile = std::function<Result<>(const std::string& file, const std::string& to)>;
// From a folder of the file system.
FetchFile fetch_from_folder(const std::string& source);

struct RdrrRepair {
  std::vector<std::string> replaced;  // files
  std::vector<RdrrFault> left;        // could not be replaced, with the reason
};
// Fetches the files of `check.faults` again, each once, and hashes each before it replaces anything. When the manifest
// is damaged, only the manifest is replaced, and the folder must be checked again.
Result<RdrrRepair> repair_rdrr_folder(const std::string& folder, const RdrrFolderCheck& check,
                                      const FetchFile& fetch);

}  // namespace doppler::formats
