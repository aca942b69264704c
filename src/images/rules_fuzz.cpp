// Fuzz target: any text as the files that say how pictures are prepared, the first byte as the picture's size. Rules
// that are read lead to tiles of whole tokens, or to an error.
#include "base/fuzz_check.h"
#include "base/json.h"
#include "images/prepared_image.h"

using namespace doppler;
using namespace doppler::images;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto json = parse_json({reinterpret_cast<const char*>(data) + 1, size - 1}, "config.json");
  if (!json || !json->is_object()) return 0;
  const auto read = read_image_rules({.config = *json, .preprocessor = *json, .processor = *json});
  if (!read) {
    check_sentence(read.error());
    return 0;
  }
  const auto rules = with_pan_and_scan(*read, read->family->pans_and_scans);
  if (!rules) std::abort();
  const auto plan = rules->family->plan(*rules, {1u + data[0] % 16u * 50u, 1u + data[0] / 16u * 50u});
  if (!plan) {
    check_sentence(plan.error());
    return 0;
  }
  for (const Stage& stage : plan->stages) {
    if (stage.size.pixels() == 0 || stage.part.size.pixels() == 0) std::abort();
  }
  return 0;
}
