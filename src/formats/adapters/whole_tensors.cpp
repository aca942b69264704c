#include "formats/adapters/whole_tensors.h"

#include "formats/checkpoint_changes.h"

namespace doppler::formats {

void put_whole_tensors(FittedAdapter& adapter, Checkpoint& checkpoint) {
  for (ReplacedTensor& tensor : adapter.replaced) {
    put_tensor(checkpoint, tensor.tensor, tensor.shape, std::move(tensor.values), adapter.name);
  }
}

}  // namespace doppler::formats
