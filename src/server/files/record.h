// Records of a private folder: JSON objects in files "ID.json".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "server/files/private_folder.h"

namespace doppler::server {

Result<void> write_record(const PrivateFolder& folder, const std::string& id, const Json& record);
void remove_record(const PrivateFolder& folder, const std::string& id);
// Those whose id has the prefix, in the order of their ids. One that cannot be read is named in the log and left out.
std::vector<std::pair<std::string, Json>> read_records(const PrivateFolder& folder,
                                                       const std::string& prefix);

}  // namespace doppler::server
