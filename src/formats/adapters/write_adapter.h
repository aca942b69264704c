// Writes an adapter as a file of the other kind. Names and the order of rows need the base model. Read next: adapter.h.
#pragma once

#include "formats/adapters/adapter.h"
#include "formats/architectures/config.h"
#include "formats/sink.h"

namespace doppler::formats {

// Writes llama.cpp's GGUF. It has one alpha, which the first matrix's scale decides; other scales go into B. Errors:
// GGUF cannot hold a part, which the error names (magnitudes of DoRA, biases, whole tensors); the adapter is of another
// model.
Result<void> write_gguf_adapter(const Adapter& adapter, const ModelConfig& model, ByteSink& sink);

// The two files of a PEFT folder.
struct PeftFiles {
  std::string config;          // adapter_config.json
  std::vector<uint8_t> model;  // adapter_model.safetensors
};
Result<PeftFiles> make_peft(const Adapter& adapter, const ModelConfig& model);

}  // namespace doppler::formats
