// Fuzz target: the record of a stored model, which may have come from elsewhere.
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "store/model_store.h"
#include "store/url.h"

using namespace doppler::store;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto record = parse_record({reinterpret_cast<const char*>(data), size}, "doppler.json");
  if (!record) return 0;
  for (const StoredFile& file : record->files) {
    if (!is_safe_stored_name(file.file)) std::abort();
  }
  // A record that was read can be written and read again.
  if (!parse_record(doppler::to_text(record_json(*record)), "again")) std::abort();
  return 0;
}
