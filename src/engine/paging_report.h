// The costs of paging experts, as a line and as JSON, for all reports. Read next: model/expert_pager.h.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "doppler/doppler.h"

namespace doppler::engine {

// "experts: 16 of 32 a layer on the device, hit rate 87.5 %, 1.2 GB uploaded in 0.41 s, 0.22 s for routes"
std::string paging_line(const ExpertPaging& paging);
Json paging_json(const ExpertPaging& paging);
// The difference to `before`.
ExpertPaging paging_since(const ExpertPaging& before, ExpertPaging now);

}  // namespace doppler::engine
