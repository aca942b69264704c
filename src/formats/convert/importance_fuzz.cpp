// Fuzz target: any bytes as an importance matrix of either form. The quantisers must be able to use the columns
// unchanged.
#include <cmath>

#include "base/fuzz_check.h"
#include "formats/convert/importance.h"

using namespace doppler::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = parse_importance({data, size}, "fuzz");
  if (!parsed) {
    check_sentence(parsed.error());
    return 0;
  }
  for (const auto& [tensor, columns] : parsed->columns) {
    for (const float value : columns) {
      if (!(value >= 0) || !std::isfinite(value)) std::abort();
    }
  }
  return 0;
}
