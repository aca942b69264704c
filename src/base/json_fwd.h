// The name Json without its 20,000 lines: for headers that pass documents by reference or pointer. A source that looks
// inside one includes base/json.h, which has the rules.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace doppler {

using Json = nlohmann::ordered_json;

}  // namespace doppler
