// Converts a model: GGUF file, Hugging Face folder or RDRR folder to GGUF file or RDRR folder, requantised as asked.
// Memory is bounded by pieces of rows (piece.h), so that a 70B model converts in 4 GB; several threads work on them.
// Interrupted at any moment it leaves no half model, and the same call goes on where it was.
// Not part of the WebAssembly build. Read next: options.h, outline.h, model_output.h.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/convert/options.h"

namespace doppler::formats {

struct ConvertReport {
  uint64_t source_bytes = 0, output_bytes = 0;  // of the tensors
  uint64_t resumed_bytes = 0;                   // bytes that were there from an interrupted run
  size_t tensors = 0;
  std::map<std::string, uint64_t> tensors_of_type;  // "q4_k": 57
  std::vector<std::string> notes;                   // fallbacks and losses, each a sentence
};

// `on_progress` gets the bytes of the output, those done and all; `on_note` gets each sentence of `notes` at once.
struct ConvertCallbacks {
  std::function<void(uint64_t done, uint64_t total)> on_progress;
  std::function<void(const std::string&)> on_note;
  std::function<bool()> stop;  // asked now and then; true ends the conversion, which can be continued
};

// Errors: those of outline.h and model_output.h, an existing output, the disk, a damaged source.
// A model with a vision tower in itself (Checkpoint::projector()) becomes two GGUF files, as llama.cpp has them: the
// tower's is "mmproj-" and the output's name.
Result<ConvertReport> convert_model(const Checkpoint& model, const std::string& output,
                                    const ConvertOptions& options, const ConvertCallbacks& callbacks = {});

}  // namespace doppler::formats
