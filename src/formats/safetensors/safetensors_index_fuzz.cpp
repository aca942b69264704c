// Fuzz target: any text as model.safetensors.index.json. File names must stay in the folder.
#include "base/fuzz_check.h"
#include "formats/safetensors/safetensors_index.h"
#include "formats/source.h"

using namespace doppler::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = parse_safetensors_index({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!index) {
    check_sentence(index.error());
    return 0;
  }
  for (const auto& [tensor, file] : index->weight_map) {
    if (file >= index->files.size() || !is_plain_file_name(index->files[file])) std::abort();
  }
  return 0;
}
