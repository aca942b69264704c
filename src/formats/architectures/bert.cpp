// BERT: an encoder with learned positions and token types, norms after the branches, biases, and a feed-forward layer
// without gates. RoBERTa (also XLM-RoBERTa and CamemBERT) differs only in its folders: positions are counted from the
// id of padding on, and the class head has a matrix of its own. Facts: transformers' models by these names; llama.cpp's
// LLM_ARCH_BERT.
#include "base/json.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/rows.h"
#include "formats/position_tensors.h"

namespace doppler::formats {
namespace bert {
namespace {

using enum TensorId;

constexpr std::string_view kGguf[] = {"bert"};
constexpr HuggingFaceType kTypes[] = {{"bert", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {
    {"max_position_embeddings", 512, true}, {"layer_norm_eps", 1e-12, false}, {"type_vocab_size", 2, true}};
constexpr std::string_view kFields[] = {"position_embedding_type"};
constexpr TensorId kBeforeLayers[] = {kPositions, kTokenTypes, kEmbeddingNorm, kEmbeddingNormBias};
constexpr TensorId kLayer[] = {
    kQ,  kK,    kV,           kAttentionOut,   kPostAttentionNorm, kPostAttentionNormBias,
    kUp, kDown, kPostFfnNorm, kPostFfnNormBias};
constexpr TensorRow kOwnTensors[] = {
    {kEmbedding, "token_embd", "embeddings.word_embeddings", {Dim::kVocab, Dim::kHidden}},
    {kQ, "attn_q", "attention.self.query", {Dim::kQRows, Dim::kHidden}},
    {kK, "attn_k", "attention.self.key", {Dim::kKvRows, Dim::kHidden}},
    {kV, "attn_v", "attention.self.value", {Dim::kKvRows, Dim::kHidden}},
    {kAttentionOut, "attn_output", "attention.output.dense", {Dim::kHidden, Dim::kQRows}},
    {kPostAttentionNorm, "attn_output_norm", "attention.output.LayerNorm", {Dim::kHidden}, /*is_norm=*/true},
    {kUp, "ffn_up", "intermediate.dense", {Dim::kFfn, Dim::kHidden}},
    {kDown, "ffn_down", "output.dense", {Dim::kHidden, Dim::kFfn}},
    {kPostFfnNorm, "layer_output_norm", "output.LayerNorm", {Dim::kHidden}, /*is_norm=*/true},
    {kClassDense, "cls", "classifier.dense", {Dim::kHidden, Dim::kHidden}},
    {kClassOut, "cls.output", "classifier.out_proj", {Dim::kClassCount, Dim::kHidden}}};
constexpr size_t kRobertaHead = 2;  // rows at the end that only RoBERTa has

constexpr HuggingFaceType kRobertaTypes[] = {
    {"xlm-roberta", WindowRule::kNone}, {"roberta", WindowRule::kNone}, {"camembert", WindowRule::kNone}};

Result<void> read(const Json& json, ModelConfig&) {
  for (const char* key : {"is_decoder", "add_cross_attention"}) DP_CHECK(require_truth(json, key, false));
  DP_TRY(const auto type, get_string(json, "position_embedding_type"));
  if (type.value_or("absolute") == "absolute") return {};
  return fail(ErrorKind::kUnsupported,
              "Positions of type \"%s\" are not supported; supported are absolute ones.",
              printable(*type).c_str());
}

// The table's first rows belong to padding and are left out when it is opened (position_tensors.h).
Result<void> read_roberta(const Json& json, ModelConfig& config) {
  DP_CHECK(read(json, config));
  DP_TRY(const uint64_t first, first_position(json));
  if (first < config.ctx_len) {
    config.ctx_len -= static_cast<uint32_t>(first);
    return {};
  }
  return fail(ErrorKind::kInvalidInput,
              "Field \"max_position_embeddings\" is %u; with \"pad_token_id\" %llu it must be above %llu.",
              config.ctx_len, static_cast<unsigned long long>(first - 1),
              static_cast<unsigned long long>(first));
}

constexpr Architecture kEncoder = {
    .family = "bert",
    .activation = ActivationFn::kGeluErf,
    .biases = Biases::kQkv,
    .layer = kLayer,
    .model = kBeforeLayers,
    .has_final_norm = false,
    .bidirectional = true,
    .rotates = false,
    .own_tensors = std::span(kOwnTensors).first<std::size(kOwnTensors) - kRobertaHead>(),
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .norm_epsilon = "attention.layer_norm_epsilon"},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .tied_embeddings = true,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kFields,
                    .norm_epsilon = "layer_norm_eps",
                    .prefix = "bert.",
                    .layers = "encoder.layer."},
};

constexpr Architecture row_of_roberta() {
  Architecture row = kEncoder;
  row.family = "roberta";
  row.own_tensors = kOwnTensors;
  row.huggingface.model_types = kRobertaTypes;
  row.huggingface.read = read_roberta;
  row.huggingface.prefix = "roberta.";
  return row;
}

}  // namespace
}  // namespace bert

constinit const Architecture rows::bert = bert::kEncoder;
constinit const Architecture rows::roberta = bert::row_of_roberta();

}  // namespace doppler::formats
