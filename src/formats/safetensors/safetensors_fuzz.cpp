// Fuzz target: any bytes as a safetensors file. The tensors that are read must lie inside it and not overlap.
#include "base/fuzz_check.h"
#include "formats/recognise.h"
#include "formats/safetensors/safetensors.h"

using namespace doppler::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  recognise({data, size}, size);
  const auto file = parse_safetensors({data, size}, size, "fuzz");
  if (!file) {
    check_sentence(file.error());
    return 0;
  }
  uint64_t total = 0;
  for (const SafetensorsTensor& tensor : file->tensors) {
    if (tensor.offset > size || tensor.bytes > size - tensor.offset) std::abort();
    total += tensor.bytes;
  }
  if (total > size) std::abort();
  return 0;
}
