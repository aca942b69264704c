// Fuzz target: any bytes as an adapter. The first byte says what the rest is: a GGUF file, or adapter_config.json up to
// a zero byte and then adapter_model.safetensors. Sizes within one tensor must agree.
#include <algorithm>
#include <memory>

#include "base/fuzz_check.h"
#include "formats/adapters/adapter.h"
#include "formats/fuzz_files.h"

using namespace doppler;
using namespace doppler::formats;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Contents = std::map<std::string, std::vector<uint8_t>>;
  if (size == 0) return 0;
  const std::vector<uint8_t> rest(data + 1, data + size);
  const auto zero = std::find(rest.begin(), rest.end(), uint8_t{0});
  std::unique_ptr<FileSet> files;
  if (data[0] == 'g') {
    files = std::make_unique<FuzzFiles>("adapter.gguf", Contents{{"adapter.gguf", rest}});
  } else {
    files = std::make_unique<FuzzFiles>(
        "", Contents{{"adapter_config.json", {rest.begin(), zero}},
                     {"adapter_model.safetensors", {zero == rest.end() ? zero : zero + 1, rest.end()}}});
  }
  auto opening = open_adapter(std::move(files));
  opening.start();
  const auto adapter = opening.take();
  if (!adapter) {
    check_sentence(adapter.error());
    return 0;
  }
  for (const AdaptedTensor& tensor : adapter->tensors) {
    if (tensor.a.size() != tensor.rank * tensor.k || tensor.b.size() != tensor.n * tensor.rank) std::abort();
    if (!tensor.bias.empty() && tensor.bias.size() != tensor.n) std::abort();
    if (!tensor.magnitude.empty() && tensor.magnitude.size() != tensor.n) std::abort();
  }
  return 0;
}
