// The place where converted tensors go: a GGUF file or an RDRR folder, each under a temporary name until commit(). If
// the same conversion begins again after an interruption, it goes on after the bytes that are on the disk. Not part of
// the WebAssembly build.
#pragma once

#include <memory>
#include <string>

#include "formats/convert/outline.h"

namespace doppler::formats {

class ModelOutput {
 public:
  virtual ~ModelOutput() = default;
  // The first tensor to be given; those before it are on the disk. Their bytes; 0: begun anew.
  virtual size_t first_tensor() const = 0;
  virtual uint64_t resumed_bytes() const = 0;
  // Tensors in order, each begun, its bytes given in order, and ended.
  virtual Result<> begin_tensor(size_t tensor) = 0;
  virtual Result<> write(std::span<const uint8_t> bytes) = 0;
  virtual Result<> end_tensor() = 0;
  // All tensors are there: flushed to the disk and renamed.
  virtual Result<> commit() = 0;
  // A sentence about remains of something else under the temporary name; empty: there were none.
  virtual const std::string& remains_note() const = 0;
};

struct OutputOptions {
  std::string path;
  std::string fingerprint;  // whatever decides the output's bytes; what another one left is not continued
  bool replace = false;
};
Result<std::unique_ptr<ModelOutput>> open_gguf_output(GgufOutline& outline, OutputOptions options);
Result<std::unique_ptr<ModelOutput>> open_rdrr_output(RdrrOutline& outline, OutputOptions options);

}  // namespace doppler::formats
