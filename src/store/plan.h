// From what the user wrote after `doppler pull` to what is to be fetched: which files, from where, with which hashes,
// under which name. Asks the hub or reads a manifest where that is needed; downloads no weights.
#pragma once

#include <string>

#include "store/remote.h"
#include "store/store_writer.h"

namespace doppler::store {

struct PlanOptions {
  std::string name;              // in the store; empty: after the source
  std::optional<Sha256> sha256;  // of the one file
  std::string hub;               // "https://huggingface.co", without a slash at the end
};

// source: an address, "org/name[:file or quantisation][@revision]" of a Hugging Face repository, a path, or the
// name of an unfinished download. Texts that were read on the way (a manifest) come with the plan as files to copy.
Result<PullPlan> plan_pull(const std::string& source, const PlanOptions& options, const ModelStore& store,
                           Web& web);

}  // namespace doppler::store
