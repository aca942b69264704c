#include "openai/lora_fields.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"

namespace doppler::openai {

Result<std::vector<LoraScale>> read_lora(const Json& list) {
  constexpr size_t kMost = 64;
  const auto wrong = [](const Json& given) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"lora\" must be a list of at most %zu adapters such as {\"id\": 0, \"scale\": 0.5}, "
                "each once, "
                "but it has %s.",
                kMost, printable(to_text(given)).c_str());
  };
  if (!list.is_array() || list.size() > kMost) return wrong(list);
  std::vector<LoraScale> out;
  for (const Json& item : list) {
    const Json *id = find(item, "id"), *scale = find(item, "scale");
    const bool has_id = id && id->is_number_unsigned() && id->get<uint64_t>() <= UINT32_MAX;
    if (!has_id || (scale && !scale->is_number())) return wrong(item);
    const LoraScale read{.id = id->get<uint32_t>(), .scale = scale ? scale->get<float>() : 1.0f};
    if (!std::isfinite(read.scale) || std::ranges::count(out, read.id, &LoraScale::id) != 0)
      return wrong(item);
    out.push_back(read);
  }
  return out;
}

}  // namespace doppler::openai
