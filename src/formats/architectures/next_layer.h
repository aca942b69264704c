// The layer after the last one, which predicts the token after the next one (multi-token prediction): finds whether a
// checkpoint has one that families read. For position p the layer reads its state h after the final norm and the token
// after it: nextn.eh_proj times [enorm(embedding of that token), hnorm(h)] goes through one decoder layer that attends
// to everything, and through nextn.shared_head_norm to the model's own output matrix.
// Facts: config.json's mtp_num_hidden_layers and mtp_use_dedicated_embeddings, tensors "mtp." (Qwen 3.5; Qwen 3 Next
// has the tensors but no key). llama.cpp's nextn_predict_layers, which block_count counts, and tensors "blk.N.nextn.".
// A layer with a table or an output matrix of its own is left out, and so are several layers.
#pragma once

#include "base/json_fwd.h"
#include "formats/architectures/config_sources.h"

namespace doppler::formats {

// Sets config.next_layers by config.json only, when the tensors are not known yet.
Result<void> announce_next_layer(const Json& json, ModelConfig& config);

// The same by the checkpoint's tensors, once their names are known. The first tensor of a layer shows that the layer is
// there; the error for its other tensors, if they are missing, comes when they are read. For a folder, json is a
// Checkpoint's config(); for a GGUF file, config.next_layers has its key's number.
Result<void> find_next_layer(const Json& json, const ShapeLookup& shape_of, ModelConfig& config);
void find_next_layer(const ShapeLookup& shape_of, ModelConfig& config);

}  // namespace doppler::formats
