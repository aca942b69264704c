// Models named by a link, "swarm:...", as other verbs name them by a path or by a name in the store.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/pull_peers.h"

namespace doppler::cli {

bool is_link(const std::string& model);
// Finds the path of the stored model that was pulled by this link. Empty: no such model is stored. Error: the text is
// no link.
Result<std::string> path_of_link(const std::string& link);
// Fetches the model of the link into the store, if it is not there.
Result<void> pull_link(const std::string& link, PullPeers& peers, bool is_quiet);

}  // namespace doppler::cli
