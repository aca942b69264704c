#include "openai/formats/bare_argument.h"

#include "base/json.h"

namespace doppler::openai {
namespace {

bool is_string(const Json& tools, std::string_view function, std::string_view key) {
  if (!tools.is_array()) return false;
  for (const Json& tool : tools) {
    const Json* described = find(tool, "function");
    const Json* name = described ? find(*described, "name") : nullptr;
    if (!name || *name != function) continue;
    const Json* schema = find(*described, "parameters");
    const Json* properties = schema ? find(*schema, "properties") : nullptr;
    const Json* property = properties ? find(*properties, key) : nullptr;
    const Json* type = property ? find(*property, "type") : nullptr;
    return type && *type == "string";
  }
  return false;
}

}  // namespace

Json tool_list(std::string_view tools) {
  auto parsed = parse_json(tools, "tools");
  return parsed && parsed->is_array() ? std::move(*parsed) : Json();
}

std::string bare_argument(const Json& tools, std::string_view function, std::string_view key,
                          std::string_view text) {
  if (!is_string(tools, function, key)) {
    if (const auto parsed = parse_json(text, "value")) return to_text(*parsed);
  }
  return to_text(Json(std::string(text)));
}

}  // namespace doppler::openai
