// The facts that lists and descriptions give about a model, loaded or not.
#pragma once

#include <cstdint>
#include <string>

namespace doppler::server {

struct ModelFacts {
  std::string architecture, format, quantisation;  // "llama", "gguf", "Q4_K": the type of most parameters
  std::string chat_template;                       // empty: none
  std::string digest;                              // 64 hexadecimal digits over name, file time and tensors
  uint64_t parameters = 0, bytes = 0;
  uint32_t ctx_len = 0, dim = 0, layers = 0;  // ctx_len: of its training
  int64_t modified = 0;                       // seconds since 1970
  bool writes_text = true, gives_embeddings = false, knows_tools = false, reasons = false;
  bool reads_images = false;
};

}  // namespace doppler::server
