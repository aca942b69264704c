// From an open checkpoint and options to the conversion: which tensors, their types, and the description that goes
// with them. Nothing is written here; check_options() came before. Read next: hf_to_gguf.h, convert_native.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/convert/conversion.h"
#include "formats/convert/options.h"
#include "formats/gguf/gguf_writer.h"

namespace doppler::formats {

struct GgufOutline {
  Conversion conversion;
  GgufHeader header;  // metadata, and all tensors declared
};
// The text model's file. Errors: fused tensors, which GGUF lacks, families without a place in GGUF, and those of
// choose_types().
Task<Result<GgufOutline>> outline_gguf(const Checkpoint& model, const ConvertOptions& options);
// The file of the vision tower of a model that has Checkpoint::projector(): the bytes of the file it was made from, or
// of a folder's tower (hf_to_projector.h) what llama.cpp's converter writes.
Result<GgufOutline> outline_projector(const Checkpoint& model);

struct RdrrOutline {
  Conversion conversion;
  RdrrManifest manifest;  // as RdrrWriter::open() takes it
  std::map<std::string, std::vector<uint8_t>> assets;
};
Task<Result<RdrrOutline>> outline_rdrr(const Checkpoint& model, const ConvertOptions& options);

// The id of an RDRR folder, or the last part of the source's path.
std::string source_name(const Checkpoint& model);

// GGUF's number for the mix, or for the type that most weights have.
uint32_t gguf_file_type(const Conversion& conversion, const ConvertOptions& options);

// The fields of an existing header, with general.file_type anew where the types change.
GgufHeader copied_header(const GgufFile& source, const Conversion& conversion, const ConvertOptions& options);

}  // namespace doppler::formats
