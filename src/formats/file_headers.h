// The header of a model's file, read from its source: only the bytes of the header, or a view if the file is mapped.
// Read next: open_checkpoint.cpp, which reads the headers of all files of a model.
#pragma once

#include "base/task.h"
#include "formats/gguf/gguf.h"
#include "formats/recognise.h"
#include "formats/safetensors/safetensors.h"
#include "formats/source.h"

namespace doppler::formats {

// Error: an empty file, or one that is recognisably something else than a model's.
Task<Result<FileLook>> look_at(ByteSource& source);
Task<Result<GgufFile>> read_gguf(ByteSource& source);
Task<Result<SafetensorsFile>> read_safetensors(ByteSource& source);

// "model-00002-of-00003.gguf" for number 2 of 3, from the name of any part; empty if the name has another form.
std::string split_name(std::string_view any, int64_t number, int64_t count);

}  // namespace doppler::formats
