// Fuzz target: any text as a config.json. A configuration that is read has the bounds that all families rely on.
#include "base/fuzz_check.h"
#include "base/json.h"
#include "formats/architectures/config_sources.h"

using namespace doppler;
using namespace doppler::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto json = parse_json({reinterpret_cast<const char*>(data), size}, "config.json");
  if (!json || !json->is_object()) return 0;
  const auto config = config_from_huggingface(*json);
  if (!config) {
    check_sentence(config.error());
  } else if (!check_config(*config) || !check_scales(*config)) {
    std::abort();
  }
  return 0;
}
