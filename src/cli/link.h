// A model named by its link, "swarm:...", where other verbs name one by its path or its name in the store.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/pull_peers.h"

namespace doppler::cli {

bool is_link(const std::string& model);
// The path of the stored model that was pulled by this link; empty: there is none. Error: the text is no link.
Result<std::string> path_of_link(const std::string& link);
// Fetches the model of the link into the store, if it is not there.
Result<void> pull_link(const std::string& link, PullPeers& peers, bool is_quiet);

}  // namespace doppler::cli
