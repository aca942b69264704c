// Lists of OpenAI's API, a page at a time.
#pragma once

#include <vector>

#include "server/service.h"

namespace doppler::server {

// Answers with the items that the query asks for: limit (1 to 10,000, else 100), after (an id), order (asc, or desc).
// `items`: the oldest first, each with its "id".
void reply_listing(Exchange& exchange, std::vector<Json> items);

}  // namespace doppler::server
