// Arguments that models write as bare text between marks: the tool's schema says which arguments are strings, the
// others are JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace doppler::openai {

// The tools' JSON text as a list; null if it is none.
Json tool_list(std::string_view tools);
// The argument as JSON text. Text that is no JSON is a string whatever the schema says.
std::string bare_argument(const Json& tools, std::string_view function, std::string_view key,
                          std::string_view text);

}  // namespace doppler::openai
