// Fuzz target: any bytes as the file of a vision tower (mmproj). A file that opens must describe itself without a
// fault, its tower's numbers must be bounded, and its tensors must be readable.
#include <cstdlib>
#include <memory>

#include "base/fuzz_check.h"
#include "formats/architectures/tower.h"
#include "formats/checkpoint_changes.h"
#include "formats/fuzz_files.h"
#include "formats/projector/projector_config.h"

using namespace doppler;
using namespace doppler::formats;

namespace {

constexpr uint64_t kMostRead = 1 << 20;

template <class T>
Result<T> now(Task<Result<T>> task) {
  task.start();
  if (!task.done()) std::abort();
  return task.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr const char* kName = "mmproj.gguf";
  const auto opened = now(open_checkpoint(std::make_unique<FuzzFiles>(
      kName, std::map<std::string, std::vector<uint8_t>>{{kName, {data, data + size}}})));
  if (!opened) {
    check_sentence(opened.error());
    return 0;
  }
  if (!(*opened)->gguf()) return 0;
  Checkpoint& checkpoint = **opened;
  if (const auto shaped = shape_projector(checkpoint); !shaped) {
    check_sentence(shaped.error());
    return 0;
  }
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (tensor.bytes > kMostRead) continue;
    const auto bytes = now(checkpoint.read_tensor(tensor));
    if (bytes && bytes->size() != tensor.bytes) std::abort();
  }
  auto described = describe_projector(*checkpoint.gguf(), checkpoint);
  if (!described) return 0;
  const VisionFiles files{.tensors = &checkpoint,
                          .config = std::move(described->config),
                          .preprocessor = std::move(described->preprocessor),
                          .processor = {}};
  const auto tower = read_tower(files);
  if (tower && *tower && ((*tower)->n_layers == 0 || (*tower)->hidden_dim == 0)) std::abort();
  return 0;
}
