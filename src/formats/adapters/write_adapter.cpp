#include "formats/adapters/write_adapter.h"

#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "formats/adapters/fit_adapter.h"
#include "formats/architectures/architecture.h"
#include "formats/architectures/tensor_names.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/safetensors/safetensors_writer.h"

namespace doppler::formats {
namespace {

Unexpected cannot_hold(const char* what, const std::string& tensor) {
  return fail(ErrorKind::kUnsupported, "A GGUF adapter cannot hold %s of \"%s\"; a PEFT folder can.", what,
              printable(tensor).c_str());
}

Result<void> check_gguf_holds(const Adapter& adapter) {
  for (const AdaptedTensor& tensor : adapter.tensors) {
    if (!tensor.magnitude.empty()) return cannot_hold("the magnitudes (DoRA)", tensor.tensor);
    if (!tensor.bias.empty()) return cannot_hold("the bias", tensor.tensor);
  }
  if (!adapter.replaced.empty()) return cannot_hold("the whole tensor", adapter.replaced.front().tensor);
  return {};
}

std::vector<float> transposed(const std::vector<float>& from, uint64_t rows, uint64_t columns) {
  std::vector<float> out(from.size());
  for (uint64_t r = 0; r < rows; ++r) {
    for (uint64_t c = 0; c < columns; ++c) out[c * rows + r] = from[r * columns + c];
  }
  return out;
}

// Lists the matrices and the embedding under the names of the target.
std::vector<std::pair<std::string, const FittedMatrix*>> all_of(const FittedAdapter& fitted,
                                                                const ModelConfig& target) {
  std::vector<std::pair<std::string, const FittedMatrix*>> out;
  if (fitted.embedding)
    out.emplace_back(tensor_name(target, TensorId::kEmbedding, 0, ""), &*fitted.embedding);
  for (const FittedMatrix& matrix : fitted.matrices) {
    out.emplace_back(tensor_name(target, matrix.tensor, matrix.layer, ""), &matrix);
  }
  return out;
}

}  // namespace

Result<void> write_gguf_adapter(const Adapter& adapter, const ModelConfig& model, ByteSink& sink) {
  DP_CHECK(check_gguf_holds(adapter));
  ModelConfig target = model;
  target.gguf_names = true;
  DP_TRY(const FittedAdapter fitted, fit_adapter(adapter, target));
  const auto all = all_of(fitted, target);
  const FittedMatrix& first = *all.front().second;
  const auto alpha = first.scale * static_cast<float>(first.rank);
  GgufHeader header;
  header.add_string("general.architecture", gguf_architecture(target));
  header.add_string("general.type", "adapter");
  header.add_string("adapter.type", "lora");
  header.add_f32("adapter.lora.alpha", alpha);
  if (!adapter.base.empty()) header.add_string("general.base_model.0.name", adapter.base);
  if (!adapter.invocation_tokens.empty()) {
    const std::vector<int32_t> tokens(adapter.invocation_tokens.begin(), adapter.invocation_tokens.end());
    header.add_i32s("adapter.alora.invocation_tokens", tokens);
  }
  for (const auto& [name, matrix] : all) {
    const bool is_table = matrix->tensor == TensorId::kEmbedding;
    const std::vector<uint64_t> a = is_table ? std::vector<uint64_t>{matrix->k, matrix->rank}
                                             : std::vector<uint64_t>{matrix->rank, matrix->k};
    header.add_tensor(name + ".weight.lora_a", DType::kF32, a);
    header.add_tensor(name + ".weight.lora_b", DType::kF32, {matrix->n, matrix->rank});
  }
  GgufWriter writer(std::move(header), sink);
  DP_CHECK(writer.begin());
  for (const auto& [name, matrix] : all) {
    const bool is_table = matrix->tensor == TensorId::kEmbedding;
    DP_CHECK(writer.write(
        doppler::bytes_of(is_table ? transposed(matrix->a, matrix->rank, matrix->k) : matrix->a)));
    std::vector<float> b = matrix->b;
    const float factor = alpha == 0 ? 1 : matrix->scale * static_cast<float>(matrix->rank) / alpha;
    if (factor != 1) {
      for (float& value : b) value *= factor;
    }
    DP_CHECK(writer.write(doppler::bytes_of(b)));
  }
  return writer.finish();
}

namespace {

constexpr std::string_view kPeftPrefix = "base_model.model.";

class PeftMaker {
 public:
  void add(std::string name, std::vector<uint64_t> shape, const std::vector<float>& values) {
    values_.push_back(values);
    names_.push_back(std::string(kPeftPrefix) + std::move(name));
    shapes_.push_back(std::move(shape));
  }
  void add(const std::string& name, const FittedMatrix& matrix) {
    const bool is_table = matrix.tensor == TensorId::kEmbedding;
    add(name + (is_table ? ".lora_embedding_A" : ".lora_A.weight"), {matrix.rank, matrix.k}, matrix.a);
    add(name + (is_table ? ".lora_embedding_B" : ".lora_B.weight"), {matrix.n, matrix.rank}, matrix.b);
    if (!matrix.bias.empty()) add(name + ".lora_B.bias", {matrix.n}, matrix.bias);
    if (!matrix.magnitude.empty()) add(name + ".lora_magnitude_vector", {matrix.n}, matrix.magnitude);
  }
  Result<std::vector<uint8_t>> take() const {
    std::vector<SafetensorsItem> items;
    for (size_t i = 0; i < names_.size(); ++i) {
      items.push_back({.name = names_[i],
                       .type = DType::kF32,
                       .shape = shapes_[i],
                       .bytes = doppler::bytes_of(values_[i])});
    }
    const std::pair<std::string, std::string> metadata[] = {{"format", "pt"}};
    MemorySink sink;
    DP_CHECK(write_safetensors(items, metadata, sink));
    return sink.bytes();
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<uint64_t>> shapes_;
  std::vector<std::vector<float>> values_;
};

// Writes "model.layers.3.self_attn.q_proj" as a pattern that matches only this name.
std::string escaped(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c == '.') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

Result<PeftFiles> make_peft(const Adapter& adapter, const ModelConfig& model) {
  ModelConfig target = model;
  target.gguf_names = false;
  if (model.gguf_names) target.huggingface_prefix = architecture_of(model).huggingface.prefix;
  DP_TRY(const FittedAdapter fitted, fit_adapter(adapter, target));
  const auto all = all_of(fitted, target);
  PeftMaker maker;
  Json targets = Json::array(), ranks = Json::object(), alphas = Json::object();
  const uint32_t rank = all.empty() ? 8 : all.front().second->rank;
  const double alpha = all.empty() ? 8 : double{all.front().second->scale} * rank;
  bool has_bias = false, has_dora = false;
  for (const auto& [name, matrix] : all) {
    if (matrix->rank == 0) continue;  // only biases
    maker.add(name, *matrix);
    targets.push_back(name);
    const double own = double{matrix->scale} * matrix->rank;
    if (matrix->rank != rank) ranks[escaped(name)] = matrix->rank;
    if (own != alpha) alphas[escaped(name)] = own;
    has_bias = has_bias || !matrix->bias.empty();
    has_dora = has_dora || !matrix->magnitude.empty();
  }
  bool replaces_biases = false;
  for (const auto& [name, matrix] : all) {
    if (matrix->replaced_bias.empty()) continue;
    maker.add(name + (matrix->rank != 0 ? ".base_layer.bias" : ".bias"), {matrix->n}, matrix->replaced_bias);
    replaces_biases = true;
  }
  Json saved = Json::array();
  for (const ReplacedTensor& tensor : fitted.replaced) {
    maker.add(tensor.tensor, tensor.shape, tensor.values);
    const std::string module = tensor.tensor.substr(0, tensor.tensor.rfind('.'));
    saved.push_back(module.substr(module.rfind('.') + 1));
  }
  Json config = {{"peft_type", "LORA"},
                 {"task_type", "CAUSAL_LM"},
                 {"base_model_name_or_path", adapter.base},
                 {"inference_mode", true},
                 {"r", rank},
                 {"lora_alpha", alpha},
                 {"target_modules", std::move(targets)},
                 {"rank_pattern", std::move(ranks)},
                 {"alpha_pattern", std::move(alphas)},
                 {"bias", replaces_biases ? "all" : "none"},
                 {"lora_bias", has_bias},
                 {"use_dora", has_dora},
                 {"use_rslora", false},
                 {"modules_to_save", saved.empty() ? Json() : std::move(saved)}};
  if (!adapter.invocation_tokens.empty()) config["alora_invocation_tokens"] = adapter.invocation_tokens;
  PeftFiles out{.config = to_text(config, 2) + "\n", .model = {}};
  DP_TRY(out.model, maker.take());
  return out;
}

}  // namespace doppler::formats
