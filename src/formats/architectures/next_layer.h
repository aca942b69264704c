// The layer behind the last one, which predicts the token after the next one (multi-token prediction): whether a
// checkpoint has one that families read. For position p, with the state h of it behind the final norm and the token
// behind it: nextn.eh_proj times [enorm(embedding of that token), hnorm(h)] goes through one decoder layer that attends to
// everything and through nextn.shared_head_norm to the model's own output matrix.
// Facts: config.json's mtp_num_hidden_layers and mtp_use_dedicated_embeddings (Qwen 3.5; Qwen 3 Next has the tensors and
// no key), tensors "mtp."; llama.cpp's nextn_predict_layers, which block_count counts, and tensors "blk.N.nextn.".
// A layer with a table or an output matrix of its own is left out, and so are several layers.
#pragma once

#include "base/json_fwd.h"
#include "formats/architectures/config_sources.h"

namespace doppler::formats {

// config.next_layers by config.json alone, whose tensors nobody has seen.
Result<void> announce_next_layer(const Json& json, ModelConfig& config);

// The same by what the checkpoint has, once its names are known: a layer is there with the first of its tensors, so that
// those that are missing are named where they are asked for. Of a folder json is a Checkpoint's config(); of a GGUF file
// config.next_layers is what its key says.
Result<void> find_next_layer(const Json& json, const ShapeLookup& shape_of, ModelConfig& config);
void find_next_layer(const ShapeLookup& shape_of, ModelConfig& config);

}  // namespace doppler::formats
