#include "formats/float8_tensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "base/half.h"
#include "base/json.h"
#include "base/text.h"
#include "formats/quant/codec.h"
#include "formats/quant/float8.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kUsualBlock = 128;           // DeepSeek V3's
constexpr uint64_t kMostFloat8Block = 1 << 20;  // far above any, and far from overflow
constexpr uint64_t kBF16Bytes = 2;

constexpr std::array<float, 256> kNumbers = [] {
  std::array<float, 256> numbers{};
  for (uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = e4m3_to_f32(static_cast<uint8_t>(i));
  return numbers;
}();

// A tensor in its file.
struct Placed {
  ByteSource* file;
  TensorInfo tensor;
};

// Blocks of rows by columns that share a scale, in some matrices [n, k] that follow one another.
struct Blocks {
  uint64_t n, k;
  uint64_t rows, columns;  // of a block
  uint64_t across() const { return (k + columns - 1) / columns; }
  uint64_t scale_of(uint64_t row, uint64_t column) const {
    const uint64_t down = (n + rows - 1) / rows;
    return (row / n * down + row % n / rows) * across() + column / columns;
  }
};

class WidenedSource final : public ByteSource {
 public:
  WidenedSource(Placed codes, Placed scales, Blocks blocks)
      : codes_(std::move(codes)), scales_(std::move(scales)), blocks_(blocks) {}

  const std::string& name() const override { return codes_.file->name(); }
  uint64_t size() const override { return codes_.tensor.bytes * kBF16Bytes; }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    auto reading_scales = scales_.file->read(scales_.tensor.offset, scales_.tensor.bytes);
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading_scales));
    std::vector<float> scales(host_size(scales_.tensor.bytes / dtype_info(scales_.tensor.type).block_bytes));
    DP_CO_CHECK(dequantise(scales_.tensor.type, bytes.data(), scales.data(), scales.size()));
    const uint64_t first = offset / kBF16Bytes, last = (offset + count + kBF16Bytes - 1) / kBF16Bytes;
    auto reading = codes_.file->read(codes_.tensor.offset + first, last - first);
    DP_CO_TRY(const std::vector<uint8_t> codes, co_await std::move(reading));
    std::vector<uint8_t> wide(codes.size() * kBF16Bytes);
    for (size_t i = 0; i < codes.size();) {
      const uint64_t row = (first + i) / blocks_.k, column = (first + i) % blocks_.k;
      const uint64_t run = std::min({blocks_.columns - column % blocks_.columns, blocks_.k - column,
                                     static_cast<uint64_t>(codes.size() - i)});
      const float scale = scales[host_size(blocks_.scale_of(row, column))];
      for (const size_t end = i + host_size(run); i < end; ++i) {
        const uint16_t number = f32_to_bf16(kNumbers[codes[i]] * scale);
        std::memcpy(&wide[i * kBF16Bytes], &number, kBF16Bytes);
      }
    }
    const auto begin = wide.begin() + static_cast<ptrdiff_t>(offset - first * kBF16Bytes);
    co_return std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(count));
  }

 private:
  Placed codes_, scales_;
  Blocks blocks_;
};

// quantization_config's, of the text model where that has its own.
Result<std::array<uint64_t, 2>> block_size(const Json& config) {
  const Json* text = find(config, "text_config");
  const Json* quantised = find(config, "quantization_config");
  if (!quantised && text) quantised = find(*text, "quantization_config");
  const Json* sizes = quantised ? find(*quantised, "weight_block_size") : nullptr;
  if (!sizes || sizes->is_null()) return std::array<uint64_t, 2>{kUsualBlock, kUsualBlock};
  const auto is_size = [](const Json& size) {
    if (!size.is_number_unsigned()) return false;
    const auto number = size.get<uint64_t>();
    return number != 0 && number <= kMostFloat8Block;
  };
  if (sizes->is_array() && sizes->size() == 2 && std::ranges::all_of(*sizes, is_size)) {
    return std::array<uint64_t, 2>{(*sizes)[0].get<uint64_t>(), (*sizes)[1].get<uint64_t>()};
  }
  return fail(ErrorKind::kInvalidInput,
              "Field \"weight_block_size\" is %s; allowed are two numbers from 1 to %llu.",
              printable(to_text(*sizes)).c_str(), static_cast<unsigned long long>(kMostFloat8Block));
}

Result<Blocks> blocks_of(const TensorInfo& tensor, const TensorInfo& scales, std::array<uint64_t, 2> block) {
  const size_t dims = tensor.shape.size();
  const bool is_matrix = dims >= 2 && std::ranges::count(tensor.shape, 0) == 0;
  const uint64_t n = is_matrix ? tensor.shape[dims - 2] : 1, k = is_matrix ? tensor.shape[dims - 1] : 1;
  const auto fits = [&](uint64_t rows, uint64_t columns) {
    std::vector<uint64_t> wanted = tensor.shape;
    wanted[dims - 2] = (n + rows - 1) / rows;
    wanted[dims - 1] = (k + columns - 1) / columns;
    return scales.shape == wanted;
  };
  if (is_matrix && can_dequantise(scales.type) && dtype_info(scales.type).block_size == 1) {
    const uint64_t all = tensor.bytes / k;
    if (std::ranges::all_of(scales.shape, [](uint64_t extent) { return extent == 1; })) {
      return Blocks{.n = all, .k = k, .rows = all, .columns = k};
    }
    if (fits(block[0], block[1])) return Blocks{.n = n, .k = k, .rows = block[0], .columns = block[1]};
    if (fits(1, k)) return Blocks{.n = n, .k = k, .rows = 1, .columns = k};
  }
  return fail(
      ErrorKind::kUnsupported,
      "The scales \"%s\" fit the 8-bit floats neither as one, nor as one a row, nor as one a block of "
      "%llu by %llu.",
      printable(scales.name).c_str(), static_cast<unsigned long long>(block[0]),
      static_cast<unsigned long long>(block[1]));
}

}  // namespace

Result<void> widen_float8(std::vector<std::unique_ptr<ByteSource>>& sources, std::vector<TensorInfo>& tensors,
                          const Json& config) {
  if (std::ranges::find(tensors, DType::kF8E4M3, &TensorInfo::type) == tensors.end()) return {};
  DP_TRY(const auto block, block_size(config));
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < tensors.size(); ++i) places[tensors[i].name] = i;
  std::set<std::string> dropped;
  for (TensorInfo& tensor : tensors) {
    if (tensor.type != DType::kF8E4M3 || tensor.bytes == 0) continue;
    auto scales = places.find(tensor.name + "_scale_inv");
    if (scales == places.end()) scales = places.find(tensor.name + "_scale");
    if (scales == places.end()) {
      return fail(ErrorKind::kUnsupported,
                  "Tensor \"%s\" is of 8-bit floats, but there is no \"%s_scale_inv\" beside it.",
                  printable(tensor.name).c_str(), printable(tensor.name).c_str());
    }
    const TensorInfo& scale = tensors[scales->second];
    DP_TRY(const Blocks blocks, blocks_of(tensor, scale, block));
    const std::string layer = tensor.name.substr(0, tensor.name.rfind('.') + 1);
    for (const std::string& name : {scale.name, layer + "activation_scale", layer + "input_scale"}) {
      dropped.insert(name);
    }
    auto widened = std::make_unique<WidenedSource>(Placed{sources[tensor.file].get(), tensor},
                                                   Placed{sources[scale.file].get(), scale}, blocks);
    tensor.type = DType::kBF16;
    tensor.file = static_cast<uint32_t>(sources.size());
    tensor.offset = 0;
    tensor.bytes = widened->size();
    sources.push_back(std::move(widened));
  }
  std::erase_if(tensors, [&](const TensorInfo& tensor) { return dropped.contains(tensor.name); });
  return {};
}

}  // namespace doppler::formats
