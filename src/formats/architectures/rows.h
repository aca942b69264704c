// The rows of architectures.cpp's table, a file each.
#pragma once

#include "formats/architectures/architecture.h"

namespace doppler::formats {

extern const Architecture kApertusRow, kErnie45Row, kExaone4Row, kGemmaRow, kGemma2Row, kGemma3Row, kGlm4Row,
    kGraniteRow, kGraniteHybridRow, kHunyuanV1Row, kLfm2Row, kLlamaRow, kMinistral3Row, kOlmo2Row, kPhi3Row,
    kQwen2Row, kQwen3Row, kQwen35Row, kSeedOssRow, kSmolLm3Row, kMixtralRow, kQwen2MoeRow, kQwen3MoeRow,
    kGptOssRow, kErnie45MoeRow, kHunyuanV1MoeRow, kGlm4MoeRow, kMiniMaxM2Row, kQwen35MoeRow, kLfm2MoeRow,
    kDeepSeekRow, kMistral4Row, kQwen3NextRow, kGemma4Row, kGemma3nRow, kGemmaEmbeddingRow, kBertRow,
    kModernBertRow, kNemotronHRow, kRobertaRow;

// The tensors of a layer that normalises before attention and before the feed-forward layer, and nowhere else.
inline constexpr TensorId kPreNormLayer[] = {
    TensorId::kAttentionNorm, TensorId::kQ,    TensorId::kK,  TensorId::kV,   TensorId::kAttentionOut,
    TensorId::kFfnNorm,       TensorId::kGate, TensorId::kUp, TensorId::kDown};
// The same with a norm behind each branch too.
inline constexpr TensorId kNormsAroundLayer[] = {
    TensorId::kAttentionNorm,     TensorId::kQ,       TensorId::kK,    TensorId::kV,  TensorId::kAttentionOut,
    TensorId::kPostAttentionNorm, TensorId::kFfnNorm, TensorId::kGate, TensorId::kUp, TensorId::kDown,
    TensorId::kPostFfnNorm};
// With norms of q and k, and behind the branches alone.
inline constexpr TensorId kPostNormLayer[] = {TensorId::kQ,
                                              TensorId::kK,
                                              TensorId::kV,
                                              TensorId::kQNorm,
                                              TensorId::kKNorm,
                                              TensorId::kAttentionOut,
                                              TensorId::kPostAttentionNorm,
                                              TensorId::kGate,
                                              TensorId::kUp,
                                              TensorId::kDown,
                                              TensorId::kPostFfnNorm};
// A field of config.json that a family without numbers in it must have as the family always is. Error: it has another.
Result<void> require_truth(const Json& json, const char* key, bool truth);
Result<void> require_text(const Json& json, const char* key, const char* wanted);
// Takes those layers off config.n_layers that stand behind the model in a GGUF file and guess further tokens. Where the row
// has_next_layer, one of them is config.next_layers.
Result<void> leave_out_guessing_layers(const GgufKeys& keys, ModelConfig& config);

// The same with experts in the layers that have them.
inline constexpr TensorId kPreNormMoeLayer[] = {TensorId::kAttentionNorm,
                                                TensorId::kQ,
                                                TensorId::kK,
                                                TensorId::kV,
                                                TensorId::kAttentionOut,
                                                TensorId::kFfnNorm,
                                                TensorId::kRouter,
                                                TensorId::kRouterBias,
                                                TensorId::kExpertGate,
                                                TensorId::kExpertUp,
                                                TensorId::kExpertDown,
                                                TensorId::kSharedRouter,
                                                TensorId::kSharedGate,
                                                TensorId::kSharedUp,
                                                TensorId::kSharedDown,
                                                TensorId::kGate,
                                                TensorId::kUp,
                                                TensorId::kDown};

}  // namespace doppler::formats
