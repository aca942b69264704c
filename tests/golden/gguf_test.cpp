// GGUF files made here, against references: the Hugging Face cases of golden_test with rows permuted as GGUF
// wants them and only the keys that have no default; and every block type against its own numbers stored as
// F32. Block codecs have tests of their own (formats/quant/codec_test.cpp).
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "base/half.h"
#include "formats/architectures/tensor_names.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/quant/codec.h"
#include "formats/test_helpers.h"
#include "golden_helpers.h"
#include "model/device_model.h"

namespace doppler {
namespace {

using formats::must;

struct Tensor {
  DType type;
  std::vector<uint64_t> shape;
  std::vector<uint8_t> bytes;
};
using Tensors = std::map<std::string, Tensor>;

// The first layer that sees everything ends the first round.
uint32_t window_pattern(const formats::ModelConfig& c) {
  return static_cast<uint32_t>(std::ranges::find(c.is_sliding, 0) - c.is_sliding.begin()) + 1;
}

// Keys whose absence means what the model needs are left out.
void add_architecture(formats::GgufHeader& header, const formats::ModelConfig& c) {
  const bool gemma3 = c.family == "gemma3";
  const std::string architecture = c.family, prefix = architecture + ".";  // GGUF names them alike
  header.add_string("general.architecture", architecture);
  header.add_u32(prefix + "block_count", c.n_layers);
  header.add_u32(prefix + "embedding_length", c.hidden_dim);
  header.add_u32(prefix + "feed_forward_length", c.ffn_dim);
  header.add_u32(prefix + "context_length", c.ctx_len);
  header.add_u32(prefix + "attention.head_count", c.n_heads);
  if (c.n_kv_heads != c.n_heads) header.add_u32(prefix + "attention.head_count_kv", c.n_kv_heads);
  if (c.head_dim * c.n_heads != c.hidden_dim) header.add_u32(prefix + "attention.key_length", c.head_dim);
  if (c.norm_eps != 1e-5f) header.add_f32(prefix + "attention.layer_norm_rms_epsilon", c.norm_eps);
  if (c.sliding_window != 0) header.add_u32(prefix + "attention.sliding_window", c.sliding_window);
  constexpr uint32_t kGemma3Pattern = 6;
  if (gemma3 && window_pattern(c) != kGemma3Pattern) {
    header.add_u32(prefix + "attention.sliding_window_pattern", window_pattern(c));
  }
  if (c.rope.theta != 10000) header.add_f32(prefix + "rope.freq_base", static_cast<float>(c.rope.theta));
  if (c.rope.scaling == formats::RopeScaling::kLinear || c.rope.scaling == formats::RopeScaling::kYarn) {
    header.add_string(prefix + "rope.scaling.type",
                      c.rope.scaling == formats::RopeScaling::kYarn ? "yarn" : "linear");
    header.add_f32(prefix + "rope.scaling.factor", static_cast<float>(c.rope.factor));
    header.add_u32(prefix + "rope.scaling.original_context_length",
                   static_cast<uint32_t>(c.rope.original_ctx_len));
  }
}

std::unique_ptr<formats::Checkpoint> make_gguf(const formats::ModelConfig& config, const Tensors& tensors,
                                               uint8_t version) {
  formats::GgufHeader header;
  add_architecture(header, config);
  for (const auto& [name, tensor] : tensors) header.add_tensor(name, tensor.type, tensor.shape);
  formats::MemorySink sink;
  formats::GgufWriter writer(std::move(header), sink);
  EXPECT_TRUE(writer.begin());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(writer.write(tensor.bytes)) << name;
  EXPECT_TRUE(writer.finish());
  std::vector<uint8_t> bytes = sink.bytes();
  bytes[4] = version;  // 2 and 3 differ in nothing else that a little-endian file shows
  static uint64_t bytes_read = 0;
  return open_golden(std::make_unique<formats::MemoryFileSet>(
      formats::MemoryFileSet::Files{{"model.gguf", std::move(bytes)}}, "model.gguf", &bytes_read));
}

std::vector<float> logits_of(const formats::Checkpoint& checkpoint, const std::vector<uint32_t>& tokens) {
  model::RunnerOptions options{
      .policy = must(kernels::make_policy("exact")), .ctx_len = 64, .chunk = 64, .all_logits = true};
  options.cache_format = kernels::CacheFormat::kF32;
  auto runner = must(gpu::run_to_completion(
      device(), model::DeviceModel::load(device(), checkpoint, std::move(options), {})));
  return must(gpu::run_to_completion(device(), runner->logits(0, tokens))).logits;
}

void expect_rows_near(const std::vector<float>& got, const std::vector<float>& wanted, size_t rows) {
  ASSERT_EQ(got.size(), wanted.size());
  const size_t width = wanted.size() / rows;
  for (size_t row = 0; row < rows; ++row) {
    EXPECT_LT(relative_l2(std::span(got).subspan(row * width, width),
                          std::span(wanted).subspan(row * width, width)),
              kExactTolerance)
        << "position " << row;
  }
}

// ---- Hugging Face cases as GGUF

// GGUF's llama turns neighbours (2i, 2i+1) where Hugging Face turns (i, i + head_dim/2).
std::vector<uint8_t> permuted(const std::vector<uint8_t>& bytes, uint32_t n_heads, uint32_t head_dim) {
  const size_t row_bytes = bytes.size() / n_heads / head_dim;
  std::vector<uint8_t> out;
  for (uint32_t head = 0; head < n_heads; ++head) {
    for (uint32_t i = 0; i < head_dim; ++i) {
      const uint32_t from = head * head_dim + i / 2 + i % 2 * (head_dim / 2);
      out.insert(out.end(), bytes.begin() + static_cast<ptrdiff_t>(from * row_bytes),
                 bytes.begin() + static_cast<ptrdiff_t>((from + 1) * row_bytes));
    }
  }
  return out;
}

Tensor floats(const std::vector<float>& values) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  return {DType::kF32, {values.size()}, {bytes, bytes + values.size() * sizeof(float)}};
}

// Norms of gemma3 are w in GGUF where Hugging Face has w - 1.
Tensor plus_one(const formats::TensorInfo& tensor, const std::vector<uint8_t>& bytes) {
  std::vector<float> values(tensor.shape[0]);
  EXPECT_TRUE(formats::dequantise(tensor.type, bytes.data(), values.data(), values.size()));
  for (float& value : values) value += 1;
  return floats(values);
}

// Llama 3's scaling as GGUF carries it: what each frequency is divided by.
std::vector<float> llama3_divisors(const formats::RopeConfig& r) {
  std::vector<float> out;
  for (uint32_t i = 0; i < r.rotary_dim / 2; ++i) {
    const double turns = r.original_ctx_len * std::pow(r.theta, -2.0 * i / r.rotary_dim) / (2 * M_PI);
    const double part =
        std::clamp((turns - r.low_freq_factor) / (r.high_freq_factor - r.low_freq_factor), 0.0, 1.0);
    out.push_back(static_cast<float>(1 / (part + (1 - part) / r.factor)));
  }
  return out;
}

class Renamed : public testing::TestWithParam<const char*> {};

TEST_P(Renamed, MatchesTheReferences) {
  const std::string folder = std::string(GOLDEN_DIR "/") + GetParam();
  const auto source = open_golden(must(formats::open_file_set(folder)));
  const formats::ModelConfig config = must(formats::read_config(*source));
  formats::ModelConfig gguf_config = config;
  gguf_config.gguf_names = true;
  const bool gemma3 = config.family == "gemma3";
  const bool turns_neighbours =
      formats::architecture_of(config).gguf.pairing.value == formats::RopePairing::kGptJ;
  Tensors tensors;
  for (const auto& [row, layer] : formats::tensors_of(config)) {
    for (const char* suffix : {".weight", ".bias"}) {
      const formats::TensorInfo* tensor = source->find(formats::tensor_name(config, row->id, layer, suffix));
      if (!tensor) continue;
      std::vector<uint8_t> bytes = must(formats::run_now(source->read_tensor(*tensor)));
      const std::string name = formats::tensor_name(gguf_config, row->id, layer, suffix);
      if (gemma3 && tensor->shape.size() == 1) {
        tensors[name] = plus_one(*tensor, bytes);
        continue;
      }
      if (turns_neighbours && (row->id == TensorId::kQ || row->id == TensorId::kK)) {
        bytes =
            permuted(bytes, row->id == TensorId::kQ ? config.n_heads : config.n_kv_heads, config.head_dim);
      }
      tensors[name] = {tensor->type, tensor->shape, std::move(bytes)};
    }
  }
  if (config.rope.scaling == formats::RopeScaling::kLlama3) {
    tensors["rope_freqs.weight"] = floats(llama3_divisors(config.rope));
  }
  const References refs = read_references(folder);
  const auto prompt = refs.get<uint32_t>("prompt_a");
  for (const uint8_t version : {uint8_t{2}, uint8_t{3}}) {
    SCOPED_TRACE(version);
    const auto checkpoint = make_gguf(config, tensors, version);
    ASSERT_TRUE(checkpoint);
    const std::vector<float> logits = logits_of(*checkpoint, prompt);
    expect_rows_near(logits, refs.get<float>("logits_a"), prompt.size());
    record_shown(config.family,
                 {.format = "gguf", .worst = relative_l2(logits, refs.get<float>("logits_a"))});
  }
}

std::string renamed_name(const testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  std::ranges::replace(name, '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Gguf, Renamed,
    testing::Values("families_llama/llama", "families_llama/llama/bf16", "families_llama/llama3",
                    "families_llama/llama_bias", "families_llama/llama_headdim", "families_llama/llama_odd",
                    "families_generated/h42_d2_v7", "families_generated/h3_d2_ffn1",
                    "families_generated/h60_d10_7_7_llama3", "families_generated/h130_d6_yarn_f16_small",
                    "families_gemma3/gemma3", "families_gemma3/gemma3/bf16", "families_gemma3/gemma3_hd256",
                    "families_gemma3/gemma3_vlm", "families_qwen3/qwen3"),
    renamed_name);

// ---- Block types

struct BlockType {
  DType type;
  std::vector<size_t> f16_fields;  // offsets of the scales in a block, which cannot be any bits
};

const BlockType kBlockTypes[] = {
    {DType::kF16, {}},     {DType::kBF16, {}},     {DType::kQ4_0, {0}},    {DType::kQ4_1, {0, 2}},
    {DType::kQ5_0, {0}},   {DType::kQ5_1, {0, 2}}, {DType::kQ8_0, {0}},    {DType::kQ2_K, {80, 82}},
    {DType::kQ3_K, {108}}, {DType::kQ4_K, {0, 2}}, {DType::kQ5_K, {0, 2}}, {DType::kQ6_K, {208}},
    {DType::kIQ4_NL, {0}}, {DType::kMXFP4, {}},
};

std::vector<float> numbers_of(const Tensor& tensor) {
  std::vector<float> out(tensor.shape[0] * tensor.shape[1]);
  EXPECT_TRUE(formats::dequantise(tensor.type, tensor.bytes.data(), out.data(), out.size()));
  return out;
}

// Random bits with scales such that numbers have a root mean square of about 1 / sqrt(k).
Tensor random_matrix(const BlockType& row, uint64_t n, uint64_t k, std::mt19937& random) {
  Tensor out{row.type, {n, k}, std::vector<uint8_t>(formats::bytes_of(row.type, n * k))};
  const double wanted = 1 / std::sqrt(static_cast<double>(k));
  if (row.type == DType::kF16 || row.type == DType::kBF16) {
    std::normal_distribution<float> normal(0, static_cast<float>(wanted));
    for (size_t i = 0; i < n * k; ++i) {
      const float value = normal(random);
      const uint16_t half = row.type == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
      std::memcpy(out.bytes.data() + i * 2, &half, 2);
    }
    return out;
  }
  for (uint8_t& byte : out.bytes) byte = static_cast<uint8_t>(random());
  const size_t block_bytes = dtype_info(row.type).block_bytes;
  std::vector<float> scales(out.bytes.size() / block_bytes * row.f16_fields.size());
  for (float& scale : scales) scale = std::uniform_real_distribution<float>(0.5f, 1.5f)(random);
  const auto write_scales = [&](double factor) {
    size_t next = 0;
    for (size_t block = 0; block < out.bytes.size(); block += block_bytes) {
      for (const size_t field : row.f16_fields) {
        const uint16_t half = f32_to_f16(static_cast<float>(scales[next++] * factor));
        std::memcpy(out.bytes.data() + block + field, &half, 2);
      }
      // A power of two; E2M1 codes have a root mean square of 2.9.
      if (row.type == DType::kMXFP4) out.bytes[block] = static_cast<uint8_t>(120 + random() % 3);
    }
  };
  write_scales(1);
  double squares = 0;
  for (const float value : numbers_of(out))
    squares += static_cast<double>(value) * static_cast<double>(value);
  if (!row.f16_fields.empty()) write_scales(wanted / std::sqrt(squares / static_cast<double>(n * k)));
  return out;
}

class BlockTypes : public testing::TestWithParam<BlockType> {};

TEST_P(BlockTypes, GivesWhatItsNumbersGiveAsF32) {
  formats::ModelConfig config;
  config.family = "llama";
  config.gguf_names = true;
  config.n_layers = 2;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 64;
  config.hidden_dim = 256;
  config.ffn_dim = 512;
  config.vocab_size = 96;
  config.ctx_len = 64;
  config.tied_embeddings = GetParam().f16_fields.size() == 2;  // some of each
  std::mt19937 random(17);
  Tensors stored;
  const auto add = [&](TensorId id, uint32_t layer, uint64_t n, uint64_t k) {
    stored[formats::tensor_name(config, id, layer)] = random_matrix(GetParam(), n, k, random);
  };
  const auto add_norm = [&](TensorId id, uint32_t layer) {
    std::vector<float> values(config.hidden_dim);
    for (float& value : values) value = std::uniform_real_distribution<float>(0.8f, 1.2f)(random);
    stored[formats::tensor_name(config, id, layer)] = floats(values);
  };
  add(TensorId::kEmbedding, 0, 96, 256);
  for (uint32_t layer = 0; layer < 2; ++layer) {
    add(TensorId::kQ, layer, 256, 256);
    add(TensorId::kK, layer, 128, 256);
    add(TensorId::kV, layer, 128, 256);
    add(TensorId::kAttentionOut, layer, 256, 256);
    add(TensorId::kGate, layer, 512, 256);
    add(TensorId::kUp, layer, 512, 256);
    add(TensorId::kDown, layer, 256, 512);
    add_norm(TensorId::kAttentionNorm, layer);
    add_norm(TensorId::kFfnNorm, layer);
  }
  add_norm(TensorId::kFinalNorm, 0);
  if (!config.tied_embeddings) add(TensorId::kOutput, 0, 96, 256);

  Tensors plain = stored;
  for (auto& [name, tensor] : plain) {
    if (tensor.shape.size() != 2) continue;
    const std::vector<uint64_t> shape = tensor.shape;
    tensor = floats(numbers_of(tensor));
    tensor.shape = shape;
  }
  const auto checkpoint = make_gguf(config, stored, 3);
  const auto twin = make_gguf(config, plain, 3);
  ASSERT_TRUE(checkpoint && twin);
  const std::vector<uint32_t> tokens = {3, 95, 0, 41, 41, 17, 60, 2, 8};
  expect_rows_near(logits_of(*checkpoint, tokens), logits_of(*twin, tokens), tokens.size());
}

std::string block_type_name(const testing::TestParamInfo<BlockType>& test) {
  return dtype_info(test.param.type).name;
}

INSTANTIATE_TEST_SUITE_P(Gguf, BlockTypes, testing::ValuesIn(kBlockTypes), block_type_name);

}  // namespace
}  // namespace doppler
