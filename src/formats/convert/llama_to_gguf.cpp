// Header first, then each tensor in pieces of whole rows: to float, reordered, to the wanted type
// (llama_to_gguf.h).
#include "formats/convert/llama_to_gguf.h"

#include <algorithm>
#include <cmath>

#include "formats/convert/hf_llama_config.h"
#include "formats/convert/hf_tokenizer.h"
#include "formats/gguf/llama_metadata.h"
#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kPieceNumbers = 1 << 20;  // 4 MB as floats

Result<const TensorInfo*> find_checked(const Checkpoint& model, const LlamaTensor& wanted) {
  const TensorInfo* tensor = model.find(wanted.hf_name);
  if (!tensor) {
    return fail(ErrorKind::kInvalidInput, "%s has no tensor \"%s\".", model.name().c_str(),
                wanted.hf_name.c_str());
  }
  if (tensor->shape != wanted.shape) {
    std::string given, needed;
    for (const uint64_t dim : tensor->shape) given += " " + std::to_string(dim);
    for (const uint64_t dim : wanted.shape) needed += " " + std::to_string(dim);
    return fail(ErrorKind::kInvalidInput,
                "Tensor \"%s\" has the shape [%s ], but config.json makes it [%s ].", wanted.hf_name.c_str(),
                given.c_str(), needed.c_str());
  }
  return tensor;
}

// GGUF's llama rotates neighbours (2i, 2i+1), Hugging Face's halves (i, i + head_dim/2): row 2i+j of a head
// comes from row i + j*head_dim/2.
void interleave_halves(std::vector<float>& head, uint64_t head_dim, uint64_t k) {
  std::vector<float> out(head.size());
  for (uint64_t row = 0; row < head_dim; ++row) {
    const uint64_t from = row / 2 + row % 2 * (head_dim / 2);
    std::copy_n(head.begin() + static_cast<ptrdiff_t>(from * k), k,
                out.begin() + static_cast<ptrdiff_t>(row * k));
  }
  head = std::move(out);
}

// One tensor through `writer`, some rows at a time (one head at a time where rows are reordered).
Task<Result<>> write_tensor(const Checkpoint& model, const LlamaTensor& wanted, GgufWriter& writer) {
  DP_CO_TRY(const TensorInfo* tensor, find_checked(model, wanted));
  const uint64_t k = wanted.shape.back();
  const uint64_t rows = wanted.shape.size() == 2 ? wanted.shape[0] : 1;
  const uint64_t rows_per_piece =
      wanted.permuted_heads ? rows / wanted.permuted_heads : std::clamp<uint64_t>(kPieceNumbers / k, 1, rows);
  for (uint64_t row = 0; row < rows; row += rows_per_piece) {
    const size_t count = host_size(std::min(rows_per_piece, rows - row) * k);
    auto reading = model.file(tensor->file)
                       .read(tensor->offset + bytes_of(tensor->type, row * k), bytes_of(tensor->type, count));
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
    std::vector<float> numbers(count);
    DP_CO_CHECK(dequantise(tensor->type, bytes.data(), numbers.data(), count));
    if (!std::ranges::all_of(numbers, [](float v) { return std::isfinite(v); })) {
      co_return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" holds weights that are not finite.",
                     wanted.hf_name.c_str());
    }
    if (wanted.permuted_heads) interleave_halves(numbers, rows_per_piece, k);
    std::vector<uint8_t> out(host_size(bytes_of(wanted.type, count)));
    DP_CO_CHECK(quantise(wanted.type, numbers.data(), out.data(), count));
    DP_CO_CHECK(writer.write(out));
  }
  co_return Result<>();
}

}  // namespace

Task<Result<uint64_t>> convert_llama_to_gguf(const Checkpoint& model, const ConvertOptions& options,
                                             ByteSink& sink) {
  if (model.kind() != Checkpoint::Kind::kHuggingFace) {
    co_return fail(ErrorKind::kInvalidInput, "%s is not a Hugging Face folder.", model.name().c_str());
  }
  const QuantMix* mix = find_quant_mix(options.mix);
  if (!mix) {
    co_return fail(ErrorKind::kInvalidInput, "There is no quantisation \"%s\"; there are %s.",
                   printable(options.mix).c_str(), quant_mix_names().c_str());
  }
  DP_CO_TRY(const LlamaShape shape, read_hf_llama_config(model.config()));
  const std::vector<LlamaTensor> tensors = llama_tensors(shape, *mix);
  DP_CO_CHECK(check_llama_tensors(tensors));
  GgufHeader header;
  add_llama_metadata(header, shape, *mix);
  header.add_string("general.name", options.name);
  for (const auto& [key, value] : options.metadata) header.add_string(key, value);
  auto adding = add_hf_tokenizer(model, shape.vocab_size, header);
  DP_CO_CHECK(co_await std::move(adding));
  for (const LlamaTensor& tensor : tensors) header.add_tensor(tensor.gguf_name, tensor.type, tensor.shape);
  header.build();
  const uint64_t file_bytes = header.file_bytes();

  GgufWriter writer(std::move(header), sink);
  DP_CO_CHECK(writer.begin());
  for (const LlamaTensor& tensor : tensors) {
    if (tensor.kind == LlamaTensor::Kind::kRopeFactors) {
      const std::vector<float> factors = llama3_rope_factors(shape);
      DP_CO_CHECK(writer.write({reinterpret_cast<const uint8_t*>(factors.data()), 4 * factors.size()}));
      continue;
    }
    auto writing = write_tensor(model, tensor, writer);
    DP_CO_CHECK(co_await std::move(writing));
  }
  DP_CO_CHECK(writer.finish());
  co_return file_bytes;
}

}  // namespace doppler::formats
