#include "model/weight_loader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/parallel.h"
#include "formats/quant/codec.h"
#include "model/tensor_names.h"

namespace doppler::model {
namespace {

// Host memory for rearranging at a time: large enough to hide per-call costs, small in a browser tab.
constexpr uint64_t kPieceBytes = 8ull << 20;
constexpr uint64_t kTilesOfThread = 4;  // some tenths of a millisecond of work

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += format_text(i == 0 ? "%llu" : ", %llu", static_cast<unsigned long long>(shape[i]));
  }
  return text + "]";
}

}  // namespace

WeightLoader::WeightLoader(gpu::Device& device, gpu::PlanBuilder& plan, const formats::Checkpoint& checkpoint,
                           formats::LayoutPolicy layout, UploadProgress progress)
    : device_(device), plan_(plan), checkpoint_(checkpoint), layout_(layout), progress_(std::move(progress)) {
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) total_bytes_ += tensor.bytes;
}

Result<const formats::TensorInfo*> WeightLoader::checked(const std::string& full_name,
                                                         std::initializer_list<uint64_t> shape) const {
  const formats::TensorInfo* tensor = checkpoint_.find(full_name);
  if (!tensor) return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is missing.", full_name.c_str());
  const std::vector<uint64_t> wanted(shape);
  if (tensor->shape != wanted) {
    return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has shape %s; the architecture asks for %s.",
                full_name.c_str(), shape_text(tensor->shape).c_str(), shape_text(wanted).c_str());
  }
  return tensor;
}

Result<WeightFormat> WeightLoader::format_of(const formats::TensorInfo& tensor, uint32_t k) const {
  auto format = formats::device_format(tensor.type, k, layout_);
  if (!format)
    return forward(std::move(format).error().add_while("reading tensor " + printable(tensor.name)));
  return format;
}

Task<Result<gpu::Buffer>> WeightLoader::make_buffer(std::string name, uint64_t bytes) {
  gpu::BufferDesc desc{.name = std::move(name), .bytes = bytes, .use = gpu::BufferUse::kStorage};
  weight_bytes_ += bytes;
  return device_.create_buffer(std::move(desc));
}

void WeightLoader::note_read(uint64_t bytes) {
  read_bytes_ += bytes;
  if (progress_) progress_(std::min(read_bytes_, total_bytes_), total_bytes_);
}

Task<Result<void>> WeightLoader::upload_rows(const gpu::Buffer& buffer, WeightFormat format,
                                             const WeightLayout& layout, Span span, uint32_t k,
                                             std::vector<uint8_t>& plane1) {
  const formats::TensorInfo& tensor = *span.source.tensor;
  formats::ByteSource& file = checkpoint_.file(tensor.file);
  const uint64_t row_bytes = tensor.bytes / tensor.shape[0];
  const uint64_t begin = tensor.offset + (span.source.first + span.first) * row_bytes;
  const uint64_t target = span.target_row * layout.plane0_row_bytes;
  const std::span<const uint8_t> mapped = file.mapped();
  if (!mapped.empty()) DP_CO_CHECK(co_await file.ready(begin, span.rows * row_bytes));
  if (formats::is_plain_copy(tensor.type, format, k)) {
    if (!mapped.empty()) {
      file.will_read(begin, span.rows * row_bytes);
      DP_CO_CHECK(co_await device_.upload(buffer, target, mapped.subspan(begin, span.rows * row_bytes)));
      file.done_with(begin, span.rows * row_bytes);
      note_read(span.rows * row_bytes);
      co_return Result<void>();
    }
    DP_CO_TRY(const auto pieces, co_await file.stream_pieces(begin, span.rows * row_bytes));
    uint64_t streamed = 0;
    for (const formats::StreamPiece& piece : pieces) {
      DP_CO_CHECK(
          co_await device_.upload_stream(buffer, target + streamed, piece.stream, piece.offset, piece.bytes));
      streamed += piece.bytes;
    }
    if (streamed != 0) {
      note_read(streamed);
      co_return Result<void>();
    }
  }
  const uint64_t rows_at_once =
      std::max<uint64_t>(1, kPieceBytes / std::max(row_bytes, layout.plane0_row_bytes));
  std::vector<uint8_t> plane0;
  for (uint64_t row = 0; row < span.rows; row += rows_at_once) {
    const uint64_t rows = std::min(rows_at_once, span.rows - row);
    std::vector<uint8_t> held;
    const uint8_t* from = nullptr;
    if (!mapped.empty()) {
      from = mapped.data() + begin + row * row_bytes;
    } else {
      DP_CO_TRY(held, co_await file.read(begin + row * row_bytes, rows * row_bytes));
      from = held.data();
    }
    plane0.assign(rows * layout.plane0_row_bytes, 0);
    uint8_t* scales =
        plane1.empty() ? nullptr : plane1.data() + (span.target_row + row) * layout.plane1_row_bytes;
    DP_CO_CHECK(formats::repack_rows(tensor.type, format, from, rows, k, plane0.data(), scales));
    DP_CO_CHECK(co_await device_.upload(buffer, target + row * layout.plane0_row_bytes, plane0));
    if (!mapped.empty()) file.done_with(begin + row * row_bytes, rows * row_bytes);
    note_read(rows * row_bytes);
  }
  co_return Result<void>();
}

// span.target_row is where a tile begins. Both planes go up tile by tile.
Task<Result<void>> WeightLoader::upload_tiles(const gpu::Buffer& buffer, const WeightLayout& layout,
                                              Span span, uint32_t k) {
  const formats::TensorInfo& tensor = *span.source.tensor;
  formats::ByteSource& file = checkpoint_.file(tensor.file);
  const uint64_t row_bytes = tensor.bytes / tensor.shape[0];
  const uint64_t begin = tensor.offset + (span.source.first + span.first) * row_bytes;
  const std::span<const uint8_t> mapped = file.mapped();
  const uint64_t tiles_at_once =
      std::max<uint64_t>(1, kPieceBytes / (kTileRows * std::max(row_bytes, layout.plane0_row_bytes)));
  std::vector<uint8_t> plane0, plane1;
  for (uint64_t row = 0; row < span.rows; row += tiles_at_once * kTileRows) {
    const uint64_t rows = std::min(tiles_at_once * kTileRows, span.rows - row);
    const uint64_t padded = (rows + kTileRows - 1) / kTileRows * kTileRows;
    std::vector<uint8_t> held;
    const uint8_t* from = nullptr;
    if (!mapped.empty()) {
      from = mapped.data() + begin + row * row_bytes;
    } else {
      DP_CO_TRY(held, co_await file.read(begin + row * row_bytes, rows * row_bytes));
      from = held.data();
    }
    plane0.assign(padded * layout.plane0_row_bytes, 0);
    plane1.assign(padded * layout.plane1_row_bytes, 0);
    // One thread rearranges less than a gigabyte a second, a disk gives more.
    const uint64_t share = kTilesOfThread * kTileRows;
    std::vector<Result<void>> repacked((rows + share - 1) / share);
    parallel_for(repacked.size(), [&](size_t i) {
      const uint64_t first = i * share;
      repacked[i] = formats::repack_tiles(tensor.type, from + first * row_bytes, first,
                                          std::min(share, rows - first), k, plane0.data(), plane1.data());
    });
    for (Result<void>& result : repacked) DP_CO_CHECK(std::move(result));
    const uint64_t target = span.target_row + row;
    DP_CO_CHECK(co_await device_.upload(buffer, target * layout.plane0_row_bytes, plane0));
    if (!plane1.empty()) {
      DP_CO_CHECK(
          co_await device_.upload(buffer, layout.plane1_offset + target * layout.plane1_row_bytes, plane1));
    }
    if (!mapped.empty()) file.done_with(begin + row * row_bytes, rows * row_bytes);
    note_read(rows * row_bytes);
  }
  co_return Result<void>();
}

Task<Result<kernels::Weight>> WeightLoader::upload_stacked(std::string label, WeightFormat format,
                                                           std::vector<Source> sources, uint32_t k) {
  kernels::Weight weight{.format = format, .n = 0, .k = k, .pieces = {}};
  for (const Source& source : sources) weight.n += source.rows;

  // A piece is whole rows within one binding; its planes are aligned, so leave room for that.
  const gpu::Caps& caps = device_.caps();
  const uint64_t limit = std::min(caps.max_binding_bytes, caps.max_buffer_bytes);
  const WeightLayout one_row = weight_layout(format, 1, k);
  const uint64_t bytes_per_row = one_row.plane0_row_bytes + one_row.plane1_row_bytes;
  const bool tiled = weight_format_info(format).tiled;
  uint64_t most_rows = limit < 1024 ? 0 : (limit - 1024) / bytes_per_row;
  if (tiled) most_rows = most_rows / kTileRows * kTileRows;
  if (most_rows == 0) {
    co_return fail(ErrorKind::kUnsupported, "One row of \"%s\" takes %s, but this device binds at most %s.",
                   label.c_str(), format_bytes(bytes_per_row).c_str(), format_bytes(limit).c_str());
  }
  size_t source_index = 0;
  uint64_t source_row = 0;
  for (uint64_t first = 0; first < weight.n; first += most_rows) {
    const uint64_t rows = std::min<uint64_t>(most_rows, weight.n - first);
    const WeightLayout layout = weight_layout(format, rows, k);
    DP_CO_TRY(gpu::Buffer buffer, co_await make_buffer(label, layout.total_bytes));
    std::vector<uint8_t> plane1;
    if (layout.plane1_offset != 0 && !tiled) plane1.resize(layout.total_bytes - layout.plane1_offset);
    for (uint64_t row = 0; row < rows;) {
      const Source& source = sources[source_index];
      const uint64_t count = std::min<uint64_t>(rows - row, source.rows - source_row);
      const Span span{.source = source, .first = source_row, .rows = count, .target_row = row};
      if (tiled) {
        DP_CO_CHECK(co_await upload_tiles(buffer, layout, span, k));
      } else {
        DP_CO_CHECK(co_await upload_rows(buffer, format, layout, span, k, plane1));
      }
      row += count;
      source_row += count;
      if (source_row == source.rows) {
        ++source_index;
        source_row = 0;
      }
    }
    if (!plane1.empty()) DP_CO_CHECK(co_await device_.upload(buffer, layout.plane1_offset, plane1));
    weight.pieces.push_back({.buffer = plan_.external(buffer),
                             .first_row = static_cast<uint32_t>(first),
                             .rows = static_cast<uint32_t>(rows)});
    buffers_.push_back(std::move(buffer));
  }
  co_return weight;
}

std::string WeightLoader::fused_name(const std::vector<Matrix>& matrices) const {
  if (matrices.empty() || checkpoint_.find(matrices[0].name + ".weight")) return {};
  std::string whole = fused_tensor_name(matrices[0].name);
  return checkpoint_.find(whole + ".weight") ? whole : std::string();
}

Task<Result<Projection>> WeightLoader::projection(std::vector<Matrix> matrices, uint32_t k) {
  Projection out;
  out.k = k;
  const std::string fused = fused_name(matrices);
  uint64_t all_rows = 0;
  for (const Matrix& matrix : matrices) all_rows += matrix.rows;
  for (size_t i = 0; i < matrices.size();) {
    // As many neighbours as share a device format become one part.
    std::vector<Source> sources;
    std::string label;
    std::vector<float> biases;
    uint32_t rows = 0;
    WeightFormat format{};
    for (; i < matrices.size(); ++i) {
      const Matrix& matrix = matrices[i];
      const std::string name = fused.empty() ? matrix.name : fused;
      const uint64_t rows_there = fused.empty() ? matrix.rows : all_rows;
      const uint64_t first = fused.empty() ? 0 : out.n + rows;  // of the tensor's rows
      DP_CO_TRY(const formats::TensorInfo* tensor, checked(name + ".weight", {rows_there, k}));
      DP_CO_TRY(const WeightFormat this_format, format_of(*tensor, k));
      if (!sources.empty() && this_format != format) break;
      // In a tile format only whole tiles stand on one another.
      if (weight_format_info(this_format).tiled && rows % kTileRows != 0) break;
      format = this_format;
      sources.push_back({tensor, first, matrix.rows});
      label += (label.empty() ? "" : "+") + matrix.name;
      // Weights may be fused where biases are not.
      const bool own_bias = checkpoint_.find(matrix.name + ".bias") != nullptr;
      const std::string bias_name = (own_bias ? matrix.name : name) + ".bias";
      if (checkpoint_.find(bias_name)) {
        const uint64_t begin = own_bias ? 0 : first;
        DP_CO_TRY([[maybe_unused]] const formats::TensorInfo* bias,
                  checked(bias_name, {own_bias ? matrix.rows : rows_there}));
        DP_CO_TRY(const std::vector<float> values, co_await host_vector(bias_name));
        biases.resize(rows, 0.0f);
        const auto from = values.begin() + static_cast<ptrdiff_t>(begin);
        biases.insert(biases.end(), from, from + matrix.rows);
      }
      rows += matrix.rows;
    }
    Projection::Part part;
    part.column = out.n;
    DP_CO_TRY(part.weight, co_await upload_stacked(label, format, std::move(sources), k));
    if (!biases.empty()) {
      biases.resize(rows, 0.0f);
      std::vector<uint32_t> words(rows);
      std::memcpy(words.data(), biases.data(), rows * sizeof(float));
      DP_CO_TRY(part.bias, co_await values(label + ".bias", std::move(words)));
    }
    out.n += rows;
    out.parts.push_back(std::move(part));
  }
  co_return out;
}

Task<Result<kernels::Weight>> WeightLoader::matrix(std::string name, uint32_t rows, uint32_t k) {
  DP_CO_TRY(const formats::TensorInfo* tensor, checked(name + ".weight", {rows, k}));
  DP_CO_TRY(const WeightFormat format, format_of(*tensor, k));
  std::vector<Source> sources = {{tensor, 0, rows}};
  co_return co_await upload_stacked(name, format, std::move(sources), k);
}

Task<Result<std::vector<float>>> WeightLoader::host_vector(std::string full_name) {
  const formats::TensorInfo* tensor = checkpoint_.find(full_name);
  if (!tensor) co_return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is missing.", full_name.c_str());
  uint64_t count = 1;
  for (const uint64_t extent : tensor->shape) count *= extent;
  DP_CO_TRY(const std::vector<uint8_t> bytes, co_await checkpoint_.read_tensor(*tensor));
  std::vector<float> out(count);
  DP_CO_CHECK(formats::dequantise(tensor->type, bytes.data(), out.data(), count));
  note_read(tensor->bytes);
  co_return out;
}

Task<Result<kernels::TensorView>> WeightLoader::vector(std::string name, uint32_t count, float plus) {
  return vectors({std::move(name)}, count, plus);
}

Task<Result<kernels::TensorView>> WeightLoader::vectors(std::vector<std::string> names, uint32_t count,
                                                        float plus) {
  std::vector<uint32_t> words;
  std::string label;
  for (const std::string& name : names) {
    DP_CO_TRY([[maybe_unused]] const formats::TensorInfo* tensor, checked(name + ".weight", {count}));
    DP_CO_TRY(const std::vector<float> floats, co_await host_vector(name + ".weight"));
    for (const float value : floats) words.push_back(std::bit_cast<uint32_t>(value + plus));
    label += (label.empty() ? "" : "+") + name;
  }
  co_return co_await values(std::move(label), std::move(words));
}

Task<Result<kernels::TensorView>> WeightLoader::values(std::string name, std::vector<uint32_t> words) {
  words.resize((words.size() + 3) / 4 * 4, 0);  // whole vec4s, as kernels read them
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  DP_CO_TRY(gpu::Buffer buffer, co_await make_buffer(std::move(name), words.size() * 4));
  DP_CO_CHECK(co_await device_.upload(buffer, 0, std::span(bytes, words.size() * 4)));
  const kernels::TensorView view = plan_.external(buffer);
  buffers_.push_back(std::move(buffer));
  co_return view;
}

}  // namespace doppler::model
