// Changes what an open checkpoint gives, before a model is loaded from it or converted: tensors of an adapter take the
// place of its own (adapters/whole_tensors.h, adapters/merge.h), and those of a vision tower's file join it or get the
// shapes that towers read (projector/projector.h).
#pragma once

#include <unordered_set>

#include "formats/checkpoint.h"

namespace doppler::formats {

// Adds an f32 tensor, which replaces a tensor of its name. `from` is for messages.
void put_tensor(Checkpoint& checkpoint, std::string tensor, std::vector<uint64_t> shape,
                std::vector<float> values, std::string from);
// Makes a tensor that the checkpoint has take its bytes from `source`, which holds only these. shape: its new one;
// empty: the same.
void put_source(Checkpoint& checkpoint, const std::string& tensor, std::unique_ptr<ByteSource> source,
                std::vector<uint64_t> shape = {});

// Adds the tensors and the header of a vision tower's file, as stored. Errors: both have a tensor of one name.
Result<void> join_projector(Checkpoint& checkpoint, std::unique_ptr<Checkpoint> projector);
// Gives a Hugging Face checkpoint the tensors of a vision tower's file, and its header: those in `instead_of` go, and
// `tensors` come. Their files are `sources`, numbered on from the files that the checkpoint has.
void put_projector(Checkpoint& checkpoint, std::vector<TensorInfo> tensors,
                   std::vector<std::unique_ptr<ByteSource>> sources,
                   const std::unordered_set<std::string>& instead_of, GgufFile header);
// Gives the tower's tensors the shapes of the towers' rows: of a vision tower's file, or of a checkpoint that has one's
// tensors. Only once for a checkpoint. Errors: those of reshape_projector_tensors().
Result<void> shape_projector(Checkpoint& checkpoint);

}  // namespace doppler::formats
