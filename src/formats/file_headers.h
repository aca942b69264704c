// What stands at the begin of a model's file, read from its source: as much of it as the header has, or no copy of it where the
// file is mapped. Next: open_checkpoint.cpp, which reads the headers of all files of a model.
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

}  // namespace doppler::formats
