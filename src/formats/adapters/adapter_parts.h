// The part that the readers of adapters share. It gathers a file's tensors by name into adapted matrices, and checks
// the parts of each matrix against each other when all are there.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/dtype.h"
#include "formats/adapters/adapter.h"

namespace doppler::formats {

// Reads a tensor's bytes as floats. Errors: a type that holds no plain numbers; a number that is not finite.
Result<std::vector<float>> adapter_numbers(const std::string& name, DType type,
                                           std::span<const uint8_t> bytes);

class AdapterParts {
 public:
  enum class Part : uint8_t { kA, kB, kBias, kMagnitude };
  struct Tensor {
    std::string name;             // for messages
    std::vector<uint64_t> shape;  // outermost first
    std::vector<float> values;
  };
  void add(const std::string& module, Part part, bool is_embedding, Tensor tensor);
  // Returns all matrices, without scales. Errors: a part is missing; shapes do not belong together.
  Result<std::vector<AdaptedTensor>> take();

 private:
  struct Module {
    Tensor parts[4];
    bool has[4] = {};
    bool is_embedding = false;
  };
  static Result<AdaptedTensor> join(const std::string& name, Module& module);
  std::map<std::string, Module> modules_;
};

}  // namespace doppler::formats
