// Fuzz target: any bytes as a GGUF file, whole and as a prefix of a longer file. The tensors and fields that are read
// must lie inside it.
#include "base/fuzz_check.h"
#include "formats/gguf/gguf.h"

using namespace doppler::formats;

namespace {

void use(const GgufFile& file, uint64_t file_size) {
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.offset > file_size || tensor.bytes > file_size - tensor.offset) std::abort();
  }
  uint64_t sum = 0;
  for (const GgufFile::Entry& entry : file.metadata()) {
    if (file.find(entry.key) != &entry.value) std::abort();
    for (uint64_t i = 0; i < entry.value.count(); ++i) {
      sum += static_cast<uint64_t>(entry.value.integer(i).value_or(0));
      for (const char c : entry.value.string(i).value_or("")) sum += static_cast<unsigned char>(c);
      if (entry.value.number(i) && entry.value.boolean(i)) std::abort();
    }
  }
  volatile uint64_t seen = sum;
  (void)seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const uint64_t file_size : {static_cast<uint64_t>(size), static_cast<uint64_t>(size) + (1 << 30)}) {
    const auto parse = parse_gguf({data, size}, file_size, "fuzz");
    if (!parse) {
      check_sentence(parse.error());
    } else if (parse->file) {
      use(*parse->file, file_size);
    } else if (parse->bytes_wanted <= size || parse->bytes_wanted > file_size) {
      std::abort();
    }
  }
  return 0;
}
