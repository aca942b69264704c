// Turns the words after `doppler pull` into the list of files to fetch: which, from where, with which hashes, under
// which name. Asks the hub or reads a manifest if that is needed; downloads no weights.
#pragma once

#include <string>

#include "store/remote.h"
#include "store/store_writer.h"

namespace doppler::store {

struct ListOptions {
  std::string name;              // in the store; empty: after the source
  std::optional<Sha256> sha256;  // of the one file
  std::string hub;               // "https://huggingface.co", without a slash at the end
};

// source: an address, "org/name[:file or quantisation][@revision]" of a Hugging Face repository, also with the hub's
// name before it ("hf.co/org/name"), a path, or the name of an unfinished download. Texts that were read on the way (a
// manifest) come with the list as files to copy.
Result<DownloadList> list_downloads(const std::string& source, const ListOptions& options,
                                    const ModelStore& store, Web& web);

// Returns the name in the store: `wanted` if it is not empty, else `proposed`. Error: it is no valid name.
Result<std::string> checked_name(const std::string& wanted, const std::string& proposed,
                                 const std::string& source);

}  // namespace doppler::store
