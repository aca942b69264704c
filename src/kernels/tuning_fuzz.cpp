// Fuzz target: any text as a tuning file of one device. A table that is read is the same when it is written and read
// again, and a sentence refuses any other text.
#include "base/fuzz_check.h"
#include "kernels/tuning_text.h"

using namespace doppler;
using namespace doppler::kernels;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const TuningKey key{.adapter = "a",
                      .driver = "d",
                      .provider = "p",
                      .backend = "b",
                      .wgsl = "0",
                      .lane = "fast",
                      .kv = "f16"};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto found = tuning_key_of(text, "tuning.json"); !found) check_sentence(found.error());
  const auto table = parse_tuning(text, key, "tuning.json");
  if (!table) {
    check_sentence(table.error());
    return 0;
  }
  const auto again = parse_tuning(tuning_text(key, *table), key, "tuning.json");
  if (!again || !(*again == *table)) std::abort();
  return 0;
}
