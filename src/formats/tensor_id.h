// The weights of a model: one name for each, whatever a file format calls it. Families ask for weights by it, the
// tables of architectures (formats/architectures) have the names in files, labels in profiles show tensor_label().
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
  kLayerScale,      // of the residual after a layer
  kAltupIn1,        // AltUp: into the streams after the first, and out of those streams
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
  kDense1,  // after the pooling of an embedding model
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
  kNextNorm,    // of what that layer leaves, before the output matrix
  kPatchEmbed,  // reads the values of a patch; this and all that follow belong to vision towers
  kAttentionNormBias,
  kFfnNormBias,
  kFinalNormBias,
  kPreNorm,  // before the first layer
  kPreNormBias,
  kAttentionScale,  // of what a branch adds
  kFfnScale,
  kMergerNorm,  // of patches, before those of a token become one row
  kMergerNormBias,
  kMergerUp,  // of such rows
  kMergerDown,
  kMergerIn,  // makes such a row shorter first
  kDeepNorm,  // the same of what an earlier layer leaves; the layer is the number of the merger
  kDeepNormBias,
  kDeepUp,
  kDeepDown,
  kMergerMiddle,  // between kMergerIn and a gated feed-forward layer
  kMergerGate,    // of that layer
  kMergerMean,    // is subtracted from a token's row
  kMergerScale,   // multiplies it then
  kQLimits,       // four numbers: the least and the most of what a matrix reads, then of what it makes
  kKLimits,
  kVLimits,
  kAttentionOutLimits,
  kGateLimits,
  kUpLimits,
  kDownLimits,
};
inline constexpr uint32_t kTensorIdCount = static_cast<uint32_t>(TensorId::kDownLimits) + 1;

// The same for all kinds of file: "blk.3.attn_q", "output". `layer` is ignored for weights outside the layers.
std::string tensor_label(TensorId id, uint32_t layer);
bool is_in_layer(TensorId id);

}  // namespace doppler
