// Vectors of texts: the states that an embedding model gives for a text's tokens, pooled as its files say; scores of a
// text for a query. Platform-free. Read next: score.h, which runs the tokens.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/task.h"
#include "doppler/doppler.h"
#include "engine/loaded_model.h"
#include "model/device_model.h"

namespace doppler::engine {

// Dimensions that embeddings may be cut to: 1 to the model's own, which 0 stands for. Error: others; a model whose
// embeddings cannot be cut, or that gives none.
Result<uint32_t> checked_dimensions(const formats::ModelConfig& config, uint32_t dimensions);

// The vector of one text, as checked_dimensions() gave its size; types: of its tokens, or empty. Error: no tokens, one
// outside the vocabulary, more than the context holds.
Task<Result<std::vector<float>>> embed_tokens(model::DeviceModel& runner, std::span<const uint32_t> tokens,
                                              std::span<const uint32_t> types, uint32_t dimensions);

// The same of all that a caller may ask for; of what is cut off, the last token, which ends a text, stays.
Task<Result<Embedding>> embed(model::DeviceModel& runner, std::vector<uint32_t> tokens, EmbedOptions options);

// The score of a text for a query, 0 to 1. For an encoder with a class head it is the sigmoid of the one class. For a
// model that writes text it is the share of "yes" against "no" (Qwen3-Reranker's question); its plans give all logits,
// or those two as classes. Error: another model, or one that was loaded to write text or has no tokenizer.
struct Score {
  float value = 0;
  uint32_t tokens = 0;  // that were evaluated
};
Task<Result<Score>> rerank_score(LoadedModel& loaded, std::string_view query, std::string_view text);

}  // namespace doppler::engine
