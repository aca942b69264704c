// The vision tower of a GGUF model has a file of its own, which llama.cpp calls mmproj ("general.architecture" is
// "clip"). It opens as a checkpoint with GGUF's names. Read next: vision_files.h, projector_config.h.
#pragma once

#include <memory>
#include <vector>

#include "formats/checkpoint.h"

namespace doppler::formats {

inline constexpr std::string_view kProjectorArchitecture = "clip";

// Tells whether a tensor of this name is such a file's: "v.blk.0.attn_q.weight", "mm.0.bias".
bool is_projector_tensor(std::string_view name);

// Tells whether a file of this name is a vision tower's: "mmproj-model-f16.gguf", "Model-7B.mmproj-Q8_0.gguf".
bool is_projector_name(std::string_view file_name);

// The tower's file, with its tensors as they are stored. `given`: the file that the caller names; null: the one beside
// the model. If there are several, it is the one named "mmproj-" and the model's name. Null: there is none, the model
// is no GGUF file or has its tower in itself, or the one beside it cannot be used, which a warning says.
// Errors: `given` is no file of a tower, or its tower is not known.
Task<Result<std::unique_ptr<Checkpoint>>> find_projector(const Checkpoint& model,
                                                         std::unique_ptr<FileSet> given);
// The same for a model that is loaded: the tower's tensors have the shapes of the towers' rows and the width of
// tower_padding.h, also those in the model itself. Errors also: those of read_vision_files() and read_tower().
Task<Result<std::unique_ptr<Checkpoint>>> open_projector(Checkpoint& model, std::unique_ptr<FileSet> given);

// Gives tensors of such a file the shapes and the order of the towers' rows: patch embeddings of two frames become one,
// the rows of Pixtral's queries and keys return to halves, Gemma 3's projection is transposed, LFM2's patches have
// channels last, and mergers of early layers (Qwen 3-VL) are counted one by one.
// Errors: a tensor whose numbers are in blocks, where its values have to move.
Result<void> reshape_projector_tensors(std::vector<std::unique_ptr<ByteSource>>& sources,
                                       std::vector<TensorInfo>& tensors, const GgufFile& file);

}  // namespace doppler::formats
