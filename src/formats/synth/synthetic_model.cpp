// Header, pools and the rule from place to bytes (synthetic_model.h).
#include "formats/synth/synthetic_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "formats/architectures/gguf_metadata.h"
#include "formats/architectures/tensor_names.h"
#include "formats/quant/codec.h"
#include "formats/quant/mix.h"
#include "formats/synth/shapes.h"
#include "formats/synth/vocabulary.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kCellNumbers = 256;  // a multiple of every block
constexpr uint64_t kPoolCells =
    1024;  // a row of 2048 is one of 1024^8; a pool of q4_k fits in 147 kB of cache
constexpr float kNormSpread = 0.1f;
// The norms before and after a layer of a model with `agree`. Layers then add a thousandth of the embedding to it.
constexpr float kQuietNorm = 1e-4f;

// SplitMix64 (Steele, Lea, Flood 2014): a well-mixed number from a counter.
uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Nearly gaussian with mean 0 and deviation 1: the sum of 12 uniform numbers, which needs no library function
// that could differ between machines.
float gaussian(uint64_t counter) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t bits = mixed(3 * counter + i);
    sum += (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
  }
  return (static_cast<float>(sum) - 12 * 32767.5f) / 65536.0f;
}

std::vector<uint8_t> make_pool(DType type, float mean, float deviation) {
  std::vector<float> numbers(kPoolCells * kCellNumbers);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = mean + deviation * gaussian(i);
  std::vector<uint8_t> pool(host_size(bytes_of(type, numbers.size())));
  // Cannot fail: make() takes only mixes of types that can be quantised.
  if (!quantise(type, numbers.data(), pool.data(), numbers.size())) pool.clear();
  return pool;
}

constexpr uint32_t kSyntheticLayers70B = 80;

TensorRole role_of(TensorId id) {
  switch (id) {
    case TensorId::kEmbedding:
      return TensorRole::kEmbedding;
    case TensorId::kOutput:
      return TensorRole::kOutput;
    case TensorId::kV:
      return TensorRole::kAttnV;
    case TensorId::kDown:
    case TensorId::kExpertDown:
    case TensorId::kSharedDown:
      return TensorRole::kFfnDown;
    default:
      return TensorRole::kOtherMatrix;
  }
}

// A tensor to be made up; with numbers, they are its content.
struct PlannedTensor {
  std::string name;
  DType type = DType::kF32;
  std::vector<uint64_t> shape;
  bool is_norm = false;
  TensorId id = TensorId::kEmbedding;
  std::vector<float> numbers;
};

// The f32 vectors of layers with a recurrent state. Decays are negative: with any other the state would grow without
// bound.
std::vector<float> vector_numbers(TensorId id, const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t extent : shape) count *= extent;
  std::vector<float> out(host_size(count));
  for (size_t i = 0; i < out.size(); ++i) {
    const float spread = kNormSpread * gaussian(i);
    out[i] = id == TensorId::kStateDecay ? -1 + spread : id == TensorId::kStateNorm ? 1 + spread : 5 * spread;
  }
  return out;
}

// Error: a row that is no whole number of the type's blocks.
Result<std::vector<PlannedTensor>> plan_tensors(const ModelConfig& c, const QuantMix& mix) {
  std::vector<PlannedTensor> out;
  if (std::vector<float> divisors = rope_divisors(c); !divisors.empty()) {
    out.push_back({.name = "rope_freqs.weight", .shape = {divisors.size()}, .numbers = std::move(divisors)});
  }
  const uint32_t n_layers = c.n_layers + c.next_layers;
  const bool wide_groups = n_layers == kSyntheticLayers70B && c.n_heads == 8 * c.n_kv_heads;
  for (const PlacedTensor& tensor : tensors_of(c)) {
    if (tensor.row->part != 0 || tensor.row->gguf_part != 0) continue;  // within the tensor of part 0
    std::vector<uint64_t> shape = tensor.row->shape.extents(c, tensor.layer);
    shape[0] *= tensor.row->parts;
    if (must_have_bias(c, tensor.row->id)) {
      const std::vector<uint64_t> rows = {shape[0]};
      out.push_back({.name = tensor_name(c, tensor.row->id, tensor.layer, ".bias"),
                     .shape = rows,
                     .numbers = vector_numbers(tensor.row->id, rows)});
    }
    if (tensor.row->gguf_parts > 1) shape.insert(shape.begin(), tensor.row->gguf_parts);
    PlannedTensor& made = out.emplace_back();
    made.name = tensor_name(c, tensor.row->id, tensor.layer);
    made.shape = std::move(shape);
    made.is_norm = tensor.row->is_norm;
    made.id = tensor.row->id;
    // Routers stay f32, as llama.cpp's quantiser leaves them.
    if (made.is_norm || tensor.row->id == TensorId::kRouter) continue;
    if (tensor.row->is_vector) {
      made.shape = without_ones(made.shape);
      made.numbers = vector_numbers(tensor.row->id, made.shape);
      continue;
    }
    made.type =
        type_for(mix, {role_of(tensor.row->id), tensor.layer, n_layers, c.tied_embeddings, wide_groups});
    const uint64_t k = made.shape.back();
    if (k % dtype_info(made.type).block_size != 0) made.type = with_smaller_block(made.type, k);
    const DTypeInfo& info = dtype_info(made.type);
    if (k % info.block_size == 0) continue;
    return fail(ErrorKind::kInvalidInput,
                "Column count (%llu) of tensor \"%s\" is not a multiple of the %s block (%u).",
                static_cast<unsigned long long>(k), made.name.c_str(), info.name, info.block_size);
  }
  return out;
}

// A folder has them as tensors, GGUF as keys: softplus^-1 of 0.8 and 0.3, as transformers' XIELUActivation begins.
void set_xielu(ModelConfig& config) {
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    config.xielu.insert(config.xielu.end(), {0.2037f, -1.0502f, 0.5f, -1e-6f});
  }
}

class SyntheticSource final : public ByteSource {
 public:
  explicit SyntheticSource(std::shared_ptr<const SyntheticModel> model) : model_(std::move(model)) {}
  const std::string& name() const override { return model_->name(); }
  uint64_t size() const override { return model_->size(); }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    std::vector<uint8_t> bytes(host_size(count));
    model_->fill(offset, bytes);
    co_return bytes;
  }

 private:
  std::shared_ptr<const SyntheticModel> model_;
};

class SyntheticFileSet final : public FileSet {
 public:
  explicit SyntheticFileSet(std::unique_ptr<SyntheticModel> model)
      : model_(std::move(model)), file_(model_->name() + ".gguf") {}
  const std::string& root() const override { return model_->name(); }
  const std::string& main_file() const override { return file_; }
  std::vector<std::string> list() const override { return {file_}; }
  Task<Result<std::unique_ptr<ByteSource>>> open(std::string name) override {
    if (name != file_) co_return std::unique_ptr<ByteSource>();
    co_return std::unique_ptr<ByteSource>(std::make_unique<SyntheticSource>(model_));
  }

 private:
  std::shared_ptr<const SyntheticModel> model_;
  std::string file_;
};

}  // namespace

Result<std::unique_ptr<SyntheticModel>> SyntheticModel::make(std::string_view spec,
                                                             std::optional<double> agree) {
  const size_t colon = spec.rfind(':');
  DP_TRY(NamedConfig shape, shape_of(std::string(spec.substr(0, colon))));
  ModelConfig& config = shape.config;
  config.gguf_names = true;
  if (architecture_of(config).family == "apertus") set_xielu(config);
  const std::string_view mix_name = colon == std::string_view::npos ? "q4_k_m" : spec.substr(colon + 1);
  const QuantMix* mix = find_quant_mix(mix_name);
  if (!mix) {
    return fail(ErrorKind::kInvalidInput, "There is no quantisation \"%s\"; there are %s.",
                printable(mix_name).c_str(), quant_mix_names().c_str());
  }
  std::unique_ptr<SyntheticModel> model(new SyntheticModel());
  model->name_ = "synthetic-" + shape.name + "-" + mix->name;
  if (agree) {
    if (!(*agree >= 0 && *agree <= 1))
      return fail(ErrorKind::kInvalidInput, "The share of tokens that agree is %g; allowed is 0 to 1.",
                  *agree);
    if (config.hidden_dim % kCellNumbers != 0) {
      return fail(ErrorKind::kUnsupported,
                  "A synthetic text needs a hidden size that is a multiple of 256; %s has %u.",
                  shape.name.c_str(), config.hidden_dim);
    }
    model->name_ += format_text("-agree-%g", *agree);
    model->agree_ = *agree;
    config.tied_embeddings = false;
  }
  GgufHeader header;
  DP_CHECK(add_config_metadata(header, config, mix->file_type));
  header.add_string("general.name", model->name_);
  header.add_string("general.description",
                    "Synthetic: a real model's shape with made-up weights. Its text means nothing.");
  header.add_bool("general.synthetic", true);
  add_synthetic_vocabulary(header, config.vocab_size);

  DP_TRY(const std::vector<PlannedTensor> tensors, plan_tensors(config, *mix));
  for (const PlannedTensor& tensor : tensors) header.add_tensor(tensor.name, tensor.type, tensor.shape);
  model->header_ = header.build();
  model->size_ = header.file_bytes();

  std::map<std::pair<DType, uint64_t>, std::shared_ptr<const Pool>> matrix_pools;  // by type and k
  const auto norm_pool = std::make_shared<const Pool>(make_pool(DType::kF32, 1, kNormSpread));
  const auto quiet_pool =
      std::make_shared<const Pool>(make_pool(DType::kF32, kQuietNorm, kQuietNorm * kNormSpread));
  model->vocab_size_ = config.vocab_size;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PlannedTensor& tensor = tensors[i];
    const GgufTensor& place = header.tensors()[i];
    Tensor& made = model->tensors_.emplace_back();
    made = {.offset = place.offset,
            .bytes = place.bytes,
            .cell_bytes = bytes_of(tensor.type, kCellNumbers),
            .seed = mixed(i),
            .pool = agree && tensor.name.starts_with("blk.") ? quiet_pool : norm_pool};
    if (tensor.id == TensorId::kEmbedding) model->embedding_seed_ = made.seed;
    if (agree && tensor.id == TensorId::kOutput) made.row_cells = config.hidden_dim / kCellNumbers;
    if (!tensor.numbers.empty()) {
      Pool numbers(host_size(place.bytes));
      std::memcpy(numbers.data(), tensor.numbers.data(), numbers.size());
      made.cell_bytes = place.bytes;
      made.pool = std::make_shared<const Pool>(std::move(numbers));
    } else if (!tensor.is_norm) {
      const uint64_t k = tensor.shape.back();
      auto& pool = matrix_pools[{tensor.type, k}];
      if (!pool) {
        pool = std::make_shared<const Pool>(make_pool(tensor.type, 0, 1 / std::sqrt(static_cast<float>(k))));
      }
      made.pool = pool;
    }
  }
  return model;
}

uint64_t SyntheticModel::cell_hash(const Tensor& tensor, uint64_t cell) const {
  if (tensor.row_cells == 0) return mixed(tensor.seed + cell);
  const uint64_t before = (cell / tensor.row_cells + vocab_size_ - 1) % vocab_size_;
  const double share = static_cast<double>(mixed(~before) >> 11) * 0x1p-53;
  if (share >= agree_) return mixed(tensor.seed + cell);
  return mixed(embedding_seed_ + before * tensor.row_cells + cell % tensor.row_cells);
}

void SyntheticModel::fill_tensor(const Tensor& tensor, uint64_t from, std::span<uint8_t> out) const {
  const uint64_t n_cells = tensor.pool->size() / tensor.cell_bytes;  // a power of two
  uint64_t cell = from / tensor.cell_bytes, within = from % tensor.cell_bytes;
  while (!out.empty()) {
    const uint64_t choice = cell_hash(tensor, cell) & (n_cells - 1);
    const size_t count = host_size(std::min<uint64_t>(out.size(), tensor.cell_bytes - within));
    std::memcpy(out.data(), tensor.pool->data() + choice * tensor.cell_bytes + within, count);
    out = out.subspan(count);
    within = 0;
    ++cell;
  }
}

void SyntheticModel::fill(uint64_t offset, std::span<uint8_t> out) const {
  if (offset < header_.size()) {
    const size_t count = host_size(std::min<uint64_t>(out.size(), header_.size() - offset));
    std::memcpy(out.data(), header_.data() + offset, count);
    out = out.subspan(count);
    offset += count;
  }
  auto tensor = std::ranges::upper_bound(tensors_, offset, {}, &Tensor::offset);
  if (tensor != tensors_.begin()) --tensor;
  for (; !out.empty() && tensor != tensors_.end(); ++tensor) {
    const uint64_t end = tensor->offset + tensor->bytes;
    if (offset < end) {
      const size_t count = host_size(std::min<uint64_t>(out.size(), end - offset));
      fill_tensor(*tensor, offset - tensor->offset, out.first(count));
      out = out.subspan(count);
      offset += count;
    }
    const uint64_t next = tensor + 1 == tensors_.end() ? size_ : (tensor + 1)->offset;
    const size_t padding = host_size(std::min<uint64_t>(out.size(), next - offset));
    std::memset(out.data(), 0, padding);
    out = out.subspan(padding);
    offset += padding;
  }
}

std::unique_ptr<FileSet> synthetic_file_set(std::unique_ptr<SyntheticModel> model) {
  return std::make_unique<SyntheticFileSet>(std::move(model));
}

}  // namespace doppler::formats
