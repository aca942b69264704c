// Gemma (Gemma Team 2024): Llama's block after embeddings times sqrt(H), with GELU gates.
#include <cmath>

#include "families/family.h"

namespace doppler::families {

void build_gemma(Builder& b) {
  layers::decoder(b, std::sqrt(static_cast<float>(b.config.hidden_dim)), llama_block);
}

}  // namespace doppler::families
