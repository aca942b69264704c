// Which weight of a model: one name for what every file format calls differently. Families ask for weights by it, the
// tables of architectures (formats/architectures) say what files call them, labels in profiles show tensor_label().
#pragma once

#include <cstdint>
#include <string>

namespace doppler {

enum class TensorId : uint8_t {
  kEmbedding,
  kOutput,
  kFinalNorm,
  kAttentionNorm,
  kQ,
  kK,
  kV,
  kAttentionOut,
  kQNorm,  // of each head
  kKNorm,
  kPostAttentionNorm,  // of what attention adds to the residual
  kFfnNorm,
  kGate,
  kUp,
  kDown,
  kPostFfnNorm,    // of what the feed-forward layer adds to the residual
  kAttentionGate,  // of attention's output
  kConvIn,         // gates and input of a short convolution
  kConv,
  kConvBias,
  kConvOut,
  kDeltaQkv,  // of a gated delta net
  kDeltaGate,
  kDeltaRate,
  kDeltaDecay,
  kMambaIn,     // gate, x, B, C and dt of Mamba 2
  kStateDecay,  // A of each head of a recurrence
  kStateTimeBias,
  kStateSkip,  // D
  kStateNorm,
  kStateOut,
  kXielu,       // the four numbers of an activation
  kSinks,       // a logit of each head that joins the denominator of its softmax
  kRouter,      // of a mixture of experts
  kRouterBias,  // of its scores
  kExpertGate,  // of all experts, one after another
  kExpertUp,
  kExpertDown,
  kSharedGate,  // of the expert that sees every row
  kSharedUp,
  kSharedDown,
  kSharedRouter,  // its own gate: one output
  kExpertsIn,     // to the smaller rows that experts work on, and back
  kExpertsOut,
  kQDown,  // of multi-head latent attention: what queries are compressed by, and its norm
  kQDownNorm,
  kQUp,
  kLatent,  // of keys and values, and the part of keys that rotates
  kLatentNorm,
  kKeyUp,  // from the latent, of each head
  kValueUp,
  kRouterNorm,    // of what a router reads
  kExpertScale,   // of each expert's weight
  kExpertNorm,    // of what experts read beside a feed-forward layer
  kDenseOutNorm,  // of what that layer leaves
  kExpertOutNorm,
  kLayerTable,      // embeddings of each token, one a layer
  kLayerTableProj,  // of the token's embedding, to the same size
  kLayerTableNorm,
  kLayerInputGate,
  kLayerInputProj,
  kLayerInputNorm,  // of what that adds to the residual
  kLayerScale,      // of the residual behind a layer
  kAltupIn1,        // AltUp: into the streams behind the first, and out of them
  kAltupIn2,
  kAltupIn3,
  kAltupOut1,
  kAltupOut2,
  kAltupOut3,
  kAltupRouterNorm,
  kAltupRouter,
  kAltupPredict,
  kAltupCorrect,
  kAltupScale,
  kLaurelLeft,
  kLaurelRight,
  kLaurelNorm,
  kDense1,  // behind the pooling of an embedding model
  kDense2,
  kPositions,  // learned embeddings of positions
  kTokenTypes,
  kEmbeddingNorm,
  kEmbeddingNormBias,
  kPostAttentionNormBias,
  kPostFfnNormBias,
  kClassDense,  // of a model that scores texts
  kClassNorm,
  kClassOut,
  kNextProjection,  // of layer n_layers, which predicts the token after the next one: from [token's embedding, state]
  kNextEmbeddingNorm,
  kNextHiddenNorm,
  kNextNorm,  // of what that layer leaves, before the output matrix
  kPatchEmbed,  // of a vision tower, as all that follow: from the values of a patch
  kAttentionNormBias,
  kFfnNormBias,
  kFinalNormBias,
  kPreNorm,  // before the first layer
  kPreNormBias,
  kClassEmbedding,  // of a row that is no patch
  kBranchScale,     // of what attention and the feed-forward layer add to the residual
  kFfnBranchScale,
  kMergerNorm,  // of patches, before those of a token become one row
  kMergerNormBias,
  kMergerUp,  // of such rows
  kMergerGate,
  kMergerDown,
  kMergerIn,  // what makes such a row a shorter one first, and its norm
  kMergerInNorm,
  kMergerInNormBias,
  kDeepNorm,  // the same of what an earlier layer leaves; the layer is the number of the merger
  kDeepNormBias,
  kDeepUp,
  kDeepDown,
};
inline constexpr uint32_t kTensorIdCount = static_cast<uint32_t>(TensorId::kDeepDown) + 1;

// The same for all kinds of file: "blk.3.attn_q", "output". `layer` is ignored for weights outside the layers.
std::string tensor_label(TensorId id, uint32_t layer);
bool is_in_layer(TensorId id);

}  // namespace doppler
