// Keys: llama.cpp's gguf-py constants and its converter. A number without a key is a constant there or is left out;
// each such number here is that of the published preprocessor_config.json, or of the default of transformers' class.
#include "formats/projector/projector_config.h"

#include <cmath>
#include <string>

namespace doppler::formats {
namespace {

constexpr int64_t kMostCount = 1 << 24;

// Keys below "clip.vision.".
class Keys {
 public:
  explicit Keys(const GgufFile& file) : file_(file) {}

  Result<int64_t> count_or(const char* key, int64_t otherwise) const {
    DP_TRY(const auto value, file_.get_integer(full(key)));
    if (!value && otherwise > 0) return otherwise;
    if (value && *value >= 1 && *value <= kMostCount) return *value;
    return fail(ErrorKind::kInvalidInput, "Key \"%s\" is %s; allowed are 1 to %lld.", full(key).c_str(),
                value ? std::to_string(*value).c_str() : "missing", static_cast<long long>(kMostCount));
  }
  Result<int64_t> count(const char* key) const { return count_or(key, 0); }
  Result<double> epsilon() const {
    DP_TRY(const auto value, file_.get_number(full("attention.layer_norm_epsilon")));
    return value.value_or(1e-6);
  }
  Result<Json> channels(const char* key) const {
    DP_TRY(const auto values, file_.get_numbers(full(key)));
    if (!values || values->size() != 3) {
      return fail(ErrorKind::kInvalidInput, "Key \"%s\" is no list of 3 numbers.", full(key).c_str());
    }
    return Json::array({(*values)[0], (*values)[1], (*values)[2]});
  }
  const GgufFile& file() const { return file_; }
  static std::string full(const char* key) { return std::string("clip.vision.") + key; }

 private:
  const GgufFile& file_;
};

// vision_config as CLIP's and SigLIP's towers have it.
Result<Json> read_blocks(const Keys& keys, const char* activation) {
  DP_TRY(const int64_t layers, keys.count("block_count"));
  DP_TRY(const int64_t hidden, keys.count("embedding_length"));
  DP_TRY(const int64_t heads, keys.count("attention.head_count"));
  DP_TRY(const int64_t ffn, keys.count("feed_forward_length"));
  DP_TRY(const int64_t patch, keys.count("patch_size"));
  DP_TRY(const int64_t size, keys.count("image_size"));
  DP_TRY(const double epsilon, keys.epsilon());
  return Json{{"num_hidden_layers", layers}, {"hidden_size", hidden},   {"num_attention_heads", heads},
              {"intermediate_size", ffn},    {"patch_size", patch},     {"image_size", size},
              {"layer_norm_eps", epsilon},   {"hidden_act", activation}};
}

Result<Json> read_normalisation(const Keys& keys) {
  DP_TRY(Json mean, keys.channels("image_mean"));
  DP_TRY(Json deviation, keys.channels("image_std"));
  return Json{{"image_mean", std::move(mean)}, {"image_std", std::move(deviation)}};
}

Result<Json> square(const Keys& keys) {
  DP_TRY(const int64_t size, keys.count("image_size"));
  return Json{{"height", size}, {"width", size}};
}

// Numbers of the same names in all towers of Qwen's kind.
Result<void> read_qwen(const Keys& keys, Json& vision, ProjectorConfig& out) {
  DP_TRY(const int64_t block, keys.count_or("spatial_merge_size", 2));
  DP_TRY(const int64_t rows, keys.count("projection_dim"));
  vision.update({{"depth", vision["num_hidden_layers"]},
                 {"num_heads", vision["num_attention_heads"]},
                 {"spatial_merge_size", block},
                 {"temporal_patch_size", 2},
                 {"out_hidden_size", rows}});
  out.preprocessor.update(
      {{"patch_size", vision["patch_size"]}, {"merge_size", block}, {"temporal_patch_size", 2}});
  return {};
}

// n_wa_pattern: each so many-th layer sees the whole picture. 32 layers have the pattern 8: layers 7, 15, 23 and 31.
Result<void> qwen2_5_vl(const Keys& keys, Json& vision, ProjectorConfig& out) {
  DP_CHECK(read_qwen(keys, vision, out));
  DP_TRY(const int64_t pattern, keys.count("n_wa_pattern"));
  Json whole = Json::array();
  const auto layers = vision["depth"].get<int64_t>();
  for (int64_t layer = pattern - 1; layer < layers; layer += pattern) whole.push_back(layer);
  vision.update({{"window_size", 8 * vision["patch_size"].get<int64_t>()},
                 {"fullatt_block_indexes", std::move(whole)}});
  out.preprocessor.update({{"min_pixels", 3136}, {"max_pixels", 12845056}});
  return {};
}

Result<void> qwen3_vl(const Keys& keys, Json& vision, ProjectorConfig& out) {
  DP_CHECK(read_qwen(keys, vision, out));
  const auto side = vision["image_size"].get<int64_t>() / vision["patch_size"].get<int64_t>();
  Json layers = Json::array();
  DP_TRY(const auto early, keys.file().get_bools(Keys::full("is_deepstack_layers")));
  for (size_t i = 0; early && i < early->size(); ++i) {
    if ((*early)[i]) layers.push_back(static_cast<int64_t>(i));
  }
  vision.update({{"num_position_embeddings", side * side}, {"deepstack_visual_indexes", std::move(layers)}});
  out.preprocessor["size"] = {{"shortest_edge", 65536}, {"longest_edge", 16777216}};
  return {};
}

Result<void> glm4v(const Keys& keys, Json& vision, ProjectorConfig& out) {
  DP_CHECK(read_qwen(keys, vision, out));
  vision["rms_norm_eps"] = vision["layer_norm_eps"];
  out.preprocessor["size"] = {{"shortest_edge", 12544}, {"longest_edge", 9633792}};
  return {};
}

Result<void> gemma3(const Keys& keys, Json& vision, ProjectorConfig& out) {
  DP_TRY(const int64_t block, keys.count_or("projector.scale_factor", 4));
  const auto side = vision["image_size"].get<int64_t>() / vision["patch_size"].get<int64_t>() / block;
  out.config["mm_tokens_per_image"] = side * side;
  DP_TRY(out.preprocessor["size"], square(keys));
  return {};
}

Result<void> idefics3(const Keys& keys, Json&, ProjectorConfig& out) {
  DP_TRY(const int64_t block, keys.count("projector.scale_factor"));
  DP_TRY(const int64_t tile, keys.count("image_size"));
  DP_TRY(const int64_t longest, keys.count_or("preproc_image_size", 4 * tile));
  out.config["scale_factor"] = block;
  out.preprocessor.update({{"size", {{"longest_edge", longest}}},
                           {"max_image_size", {{"longest_edge", tile}}},
                           {"do_image_splitting", true}});
  return {};
}

Result<void> pixtral(const Keys& keys, Json& vision, ProjectorConfig& out) {
  DP_TRY(const int64_t block, keys.count_or("spatial_merge_size", 1));
  vision["hidden_act"] = "silu";
  out.config["spatial_merge_size"] = block;
  out.config["rms_norm_eps"] = vision["layer_norm_eps"];
  if (block == 1) out.config["model_type"] = "pixtral";
  out.preprocessor["size"] = {{"longest_edge", vision["image_size"]}};
  return {};
}

Result<void> lfm2_vl(const Keys& keys, Json& vision, ProjectorConfig& out) {
  DP_TRY(const int64_t block, keys.count("projector.scale_factor"));
  out.config.update({{"downsample_factor", block}, {"projector_use_layernorm", true}});
  out.preprocessor.update({{"encoder_patch_size", vision["patch_size"]},
                           {"downsample_factor", block},
                           {"tile_size", 512},
                           {"min_image_tokens", 64},
                           {"max_image_tokens", 256},
                           {"min_tiles", 2},
                           {"max_tiles", 10},
                           {"max_pixels_tolerance", 2.0},
                           {"do_image_splitting", true},
                           {"use_thumbnail", true}});
  return {};
}

Result<void> read_own_preprocessor(const Keys& keys, ProjectorConfig& out) {
  DP_TRY(const auto text, keys.file().get_string(kProjectorPreprocessor));
  if (!text) return {};
  const std::string key(kProjectorPreprocessor);
  DP_TRY(out.preprocessor, parse_json(*text, key));
  if (out.preprocessor.is_object()) return {};
  return fail(ErrorKind::kInvalidInput, "Key \"%s\" must hold a JSON object, but it is %s.", key.c_str(),
              out.preprocessor.type_name());
}

struct ProjectorKind {
  std::string_view projector, model_type;
  const char* activation;
  Result<void> (*read)(const Keys& keys, Json& vision, ProjectorConfig& out);
};
constexpr ProjectorKind kProjectorKinds[] = {
    {"qwen2.5vl_merger", "qwen2_5_vl", "silu", qwen2_5_vl},
    {"qwen3vl_merger", "qwen3_vl", "gelu_pytorch_tanh", qwen3_vl},
    {"glm4v", "glm4v", "silu", glm4v},
    {"gemma3", "gemma3", "gelu_pytorch_tanh", gemma3},
    {"idefics3", "idefics3", "gelu_pytorch_tanh", idefics3},
    {"pixtral", "mistral3", "silu", pixtral},
    {"lfm2", "lfm2_vl", "gelu_pytorch_tanh", lfm2_vl},
};

Result<const ProjectorKind*> find_kind(const std::string& projector) {
  std::string known;
  for (const ProjectorKind& kind : kProjectorKinds) {
    if (kind.projector == projector) return &kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.projector);
  }
  return fail(ErrorKind::kUnsupported, "The projector type \"%s\" is not known; known are %s.",
              printable(projector).c_str(), known.c_str());
}

// The first extent of a matrix; 0: there is none.
uint64_t rows_of(const Checkpoint& tensors, const char* tensor) {
  const TensorInfo* found = tensors.find(tensor);
  return found && !found->shape.empty() ? found->shape[0] : 0;
}

}  // namespace

Result<ProjectorConfig> describe_projector(const GgufFile& header, const Checkpoint& tensors) {
  const Keys keys(header);
  DP_TRY(const auto type, keys.file().get_string("clip.projector_type"));
  DP_TRY(const ProjectorKind* const kind, find_kind(type.value_or("")));
  ProjectorConfig out;
  DP_TRY(Json vision, read_blocks(keys, kind->activation));
  DP_TRY(const int64_t rows, keys.count("projection_dim"));
  out.config = {{"model_type", std::string(kind->model_type)},
                {"hidden_size", rows},
                {"projector_hidden_act", "gelu"},
                {"projector_hidden_size", static_cast<int64_t>(rows_of(tensors, "mm.1.weight"))}};
  DP_TRY(out.preprocessor, read_normalisation(keys));
  vision["num_patches"] = static_cast<int64_t>(rows_of(tensors, "v.position_embd.weight"));
  DP_CHECK(kind->read(keys, vision, out));
  out.config["vision_config"] = std::move(vision);
  DP_CHECK(read_own_preprocessor(keys, out));
  return out;
}

}  // namespace doppler::formats
