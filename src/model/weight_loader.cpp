#include "model/weight_loader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>

#include "formats/architectures/tensor_names.h"
#include "formats/quant/codec.h"

namespace doppler::model {
namespace {

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += format_text(i == 0 ? "%llu" : ", %llu", static_cast<unsigned long long>(shape[i]));
  }
  return text + "]";
}

// read_config() has bounded what rows are a product of.
uint32_t rows_of(const formats::StoredTensor& matrix) {
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < matrix.shape.size(); ++i) rows *= matrix.shape[i];
  return static_cast<uint32_t>(rows);
}
// Runs of rows that a matrix is picked out of.
Result<void> check_parts(const formats::StoredTensor& matrix) {
  if (matrix.part_rows != 0 && rows_of(matrix) % matrix.part_rows == 0) return {};
  return fail(ErrorKind::kUnsupported,
              "Tensor \"%s\" holds %u matrices in turn, %u rows each; %u rows are not a multiple of that.",
              matrix.name.c_str(), matrix.parts, matrix.part_rows, rows_of(matrix));
}

uint32_t k_of(const formats::StoredTensor& matrix) { return static_cast<uint32_t>(matrix.shape.back()); }

}  // namespace

WeightLoader::WeightLoader(gpu::Device& device, gpu::PlanBuilder& plan, const formats::Checkpoint& checkpoint,
                           formats::LayoutPolicy layout, UploadProgress progress)
    : device_(device),
      plan_(plan),
      checkpoint_(checkpoint),
      layout_(layout),
      stream_(device, checkpoint, std::move(progress)) {}

Result<const formats::TensorInfo*> WeightLoader::checked(const std::string& full_name,
                                                         const std::vector<uint64_t>& shape) const {
  const formats::TensorInfo* tensor = checkpoint_.find(full_name);
  if (!tensor) return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is missing.", full_name.c_str());
  // Matrices that are stacked are as good as one of all their rows, and rows as one vector.
  std::vector<uint64_t> found = tensor->shape;
  while (found.size() > std::max<size_t>(shape.size(), 1)) {
    found[1] *= found[0];
    found.erase(found.begin());
  }
  if (!formats::is_same_shape(found, shape)) {
    return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has shape %s; the architecture asks for %s.",
                full_name.c_str(), shape_text(tensor->shape).c_str(), shape_text(shape).c_str());
  }
  return tensor;
}

Result<WeightFormat> WeightLoader::format_of(const formats::TensorInfo& tensor, uint32_t k) const {
  auto format = formats::device_format(tensor.type, k, layout_);
  if (!format)
    return forward(std::move(format).error().add_while("reading tensor " + printable(tensor.name)));
  return format;
}

// Counts no bytes: its user says how many are weights.
Task<Result<gpu::Buffer*>> WeightLoader::make_buffer(std::string name, uint64_t bytes, bool zeroed) {
  gpu::BufferDesc desc{.name = std::move(name), .bytes = bytes, .zeroed = zeroed};
  DP_CO_TRY(gpu::Buffer made, co_await device_.create_buffer(std::move(desc)));
  buffers_.push_back(std::move(made));
  co_return &buffers_.back();
}

Task<Result<WeightLoader::Place>> WeightLoader::make_place(std::string name, uint64_t bytes, bool zeroed,
                                                           Together& together) {
  weight_bytes_ += bytes;
  if (bytes <= together.bytes - together.used) {
    const Place place{.buffer = together.buffer, .offset = together.used, .bytes = bytes};
    const uint64_t step = device_.caps().binding_alignment;
    together.used = std::min(together.bytes, (together.used + bytes + step - 1) / step * step);
    co_return place;
  }
  DP_CO_TRY(const gpu::Buffer* const buffer, co_await make_buffer(std::move(name), bytes, zeroed));
  co_return Place{.buffer = buffer, .offset = 0, .bytes = bytes};
}

Task<Result<void>> WeightLoader::place_together(TogetherBytes bytes, uint64_t most_bytes) {
  most_together_ = most_bytes / 256 * 256;
  layer_bytes_ = std::move(bytes.layers);
  const uint64_t vectors = std::min((bytes.vectors + 255) / 256 * 256, most_together_);
  DP_CO_TRY(const gpu::Buffer* const buffer, co_await make_buffer("vectors", vectors, true));
  vectors_together_ = {.buffer = buffer, .used = 0, .bytes = vectors};
  co_return Result<void>();
}

Task<Result<void>> WeightLoader::begin_layer(uint32_t layer) {
  if (layer >= layer_bytes_.size()) co_return Result<void>();
  if (layer_bytes_[layer] <= weights_together_.bytes - weights_together_.used) co_return Result<void>();
  uint64_t bytes = std::min(layer_bytes_[layer], most_together_);
  for (size_t next = layer + 1; next < layer_bytes_.size(); ++next) {
    if (layer_bytes_[next] > most_together_ - bytes) break;
    bytes += layer_bytes_[next];
  }
  DP_CO_TRY(const gpu::Buffer* const buffer, co_await make_buffer("layer_weights", bytes, true));
  weights_together_ = {.buffer = buffer, .used = 0, .bytes = bytes};
  co_return Result<void>();
}

// A piece is whole rows, of tile formats whole tiles, within one binding; its planes are aligned, so leave room for
// that.
uint64_t WeightLoader::most_rows(WeightFormat format, uint32_t k) const {
  const gpu::Caps& caps = device_.caps();
  const uint64_t limit = std::min(caps.max_binding_bytes, caps.max_buffer_bytes);
  const WeightLayout one_row = weight_layout(format, 1, k);
  const uint64_t rows =
      limit < 1024 ? 0 : (limit - 1024) / (one_row.plane0_row_bytes + one_row.plane1_row_bytes);
  return weight_format_info(format).tiled ? rows / kTileRows * kTileRows : rows;
}

Task<Result<kernels::Weight>> WeightLoader::place_stacked(std::string label, WeightFormat format,
                                                          std::vector<Source> sources, uint32_t k,
                                                          Together& together, uint32_t rows_at_once,
                                                          std::vector<PagedWeight::Place>* places) {
  kernels::Weight weight{.format = format, .n = 0, .k = k, .pieces = {}};
  for (const Source& source : sources) weight.n += source.rows;

  const bool tiled = weight_format_info(format).tiled;
  const uint64_t rows_a_piece = most_rows(format, k) / rows_at_once * rows_at_once;
  if (rows_a_piece == 0) {
    const WeightLayout layout = weight_layout(format, rows_at_once, k);
    const gpu::Caps& caps = device_.caps();
    co_return fail(ErrorKind::kUnsupported, "%u rows of \"%s\" take %s, but this device binds at most %s.",
                   rows_at_once, label.c_str(), format_bytes(layout.total_bytes).c_str(),
                   format_bytes(std::min(caps.max_binding_bytes, caps.max_buffer_bytes)).c_str());
  }
  size_t source_index = 0;
  uint64_t source_row = 0;
  for (uint64_t first = 0; first < weight.n; first += rows_a_piece) {
    const uint64_t rows = std::min<uint64_t>(rows_a_piece, weight.n - first);
    const WeightLayout layout = weight_layout(format, rows, k);
    DP_CO_TRY(const Place place,
              co_await make_place(label, layout.total_bytes, !tiled || places != nullptr, together));
    weight.pieces.push_back({.buffer = view_of(place),
                             .first_row = static_cast<uint32_t>(first),
                             .rows = static_cast<uint32_t>(rows)});
    if (places) {
      places->push_back({.buffer = place.buffer, .offset = place.offset});
      continue;
    }
    WeightStream::Piece piece{.buffer = place.buffer,
                              .offset = place.offset,
                              .format = format,
                              .rows = rows,
                              .k = k,
                              .name = label,
                              .spans = {}};
    for (uint64_t row = 0; row < rows;) {
      const Source& source = sources[source_index];
      const uint64_t count = std::min<uint64_t>(rows - row, source.rows - source_row);
      piece.spans.push_back(
          {.tensor = source.tensor, .first = source.first + source_row, .rows = count, .target_row = row});
      row += count;
      source_row += count;
      if (source_row == source.rows) {
        ++source_index;
        source_row = 0;
      }
    }
    stream_.add(std::move(piece));
  }
  co_return weight;
}

std::string WeightLoader::fused_name(const std::vector<formats::StoredTensor>& matrices) const {
  if (matrices.empty() || checkpoint_.find(matrices[0].name + ".weight")) return {};
  for (std::string& whole : formats::fused_tensor_names(matrices[0].name)) {
    if (checkpoint_.find(whole + ".weight")) return std::move(whole);
  }
  return {};
}

Task<Result<Projection>> WeightLoader::projection(std::vector<formats::StoredTensor> matrices, bool stacks) {
  const uint32_t k = k_of(matrices[0]);
  Projection out;
  out.k = k;
  const std::string fused = fused_name(matrices);
  std::vector<float> all_biases;
  std::string all_labels;
  uint64_t all_rows = 0;
  for (const formats::StoredTensor& matrix : matrices) all_rows += rows_of(matrix);
  for (size_t i = 0; i < matrices.size();) {
    // As many neighbours as share a device format become one part.
    std::vector<Source> sources;
    std::string label;
    std::vector<float> biases;
    uint32_t rows = 0;
    WeightFormat format{};
    for (; i < matrices.size(); ++i) {
      const formats::StoredTensor& matrix = matrices[i];
      const uint32_t own_rows = rows_of(matrix);
      const std::string name = fused.empty() ? matrix.name : fused;
      const uint64_t rows_there = fused.empty() ? own_rows : all_rows;
      uint64_t first = fused.empty() ? 0 : out.n + rows;  // of the tensor's rows
      std::vector<uint64_t> shape = fused.empty() ? matrix.shape : std::vector<uint64_t>{all_rows, k};
      if (matrix.parts > 1) shape[0] *= matrix.parts;
      DP_CO_TRY(const formats::TensorInfo* tensor, checked(name + ".weight", shape));
      const uint32_t rows_apart = matrix.parts > 1 ? matrix.part_rows : kTileRows;
      DP_CO_TRY(const WeightFormat this_format, run_format(*tensor, rows_apart, k));
      if (!sources.empty() && (!stacks || this_format != format)) break;
      // In a tile format only whole tiles stand on one another.
      if (weight_format_info(this_format).tiled && rows % kTileRows != 0) break;
      format = this_format;
      if (matrix.parts > 1) {
        DP_CO_CHECK(check_parts(matrix));
        first = uint64_t{matrix.part} * matrix.part_rows;
        for (uint32_t row = 0; row < own_rows; row += matrix.part_rows) {
          sources.push_back({tensor, first + uint64_t{row} * matrix.parts, matrix.part_rows});
        }
      } else {
        sources.push_back({tensor, first, own_rows});
      }
      label += (label.empty() ? "" : "+") + matrix.name;
      // Weights may be fused where biases are not.
      const bool own_bias = checkpoint_.find(matrix.name + ".bias") != nullptr;
      const std::string bias_name = (own_bias ? matrix.name : name) + ".bias";
      if (checkpoint_.find(bias_name)) {
        const uint64_t begin = own_bias ? 0 : first;
        const std::vector<uint64_t> bias_shape = {own_bias ? own_rows : rows_there};
        DP_CO_TRY([[maybe_unused]] const formats::TensorInfo* bias, checked(bias_name, bias_shape));
        DP_CO_TRY(const std::vector<float> values, co_await host_vector(bias_name));
        biases.resize(rows, 0.0f);
        const auto from = values.begin() + static_cast<ptrdiff_t>(begin);
        biases.insert(biases.end(), from, from + own_rows);
      } else if (matrix.must_have_bias) {
        co_return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is missing.", bias_name.c_str());
      }
      rows += own_rows;
    }
    Projection::Part part;
    part.column = out.n;
    DP_CO_TRY(part.weight, co_await place_stacked(label, format, std::move(sources), k, weights_together_));
    if (!biases.empty()) {
      biases.resize(rows, 0.0f);
      all_biases.resize(out.n, 0.0f);
      all_biases.insert(all_biases.end(), biases.begin(), biases.end());
      DP_CO_TRY(part.bias, co_await floats(label + ".bias", biases));
    }
    all_labels += (all_labels.empty() ? "" : "+") + label;
    out.n += rows;
    out.parts.push_back(std::move(part));
  }
  if (all_biases.empty() || out.parts.size() != 2) co_return out;
  all_biases.resize(out.n, 0.0f);
  DP_CO_TRY(out.pair_bias, co_await floats(all_labels + ".bias", all_biases));
  co_return out;
}

Task<Result<Projection>> WeightLoader::experts(std::vector<formats::StoredTensor> matrices, ExpertUse use) {
  const auto n_experts = static_cast<uint32_t>(matrices[0].shape[0]);
  Projection out;
  out.k = k_of(matrices[0]);
  out.n_experts = use.slots == 0 ? n_experts : use.slots;
  for (size_t i = 0; i < matrices.size();) {
    std::vector<Source> sources;
    std::string label;
    std::vector<float> biases;
    uint32_t rows = 0, n = 0;
    WeightFormat format{};
    for (; i < matrices.size(); ++i) {
      const formats::StoredTensor& matrix = matrices[i];
      const auto own_n = static_cast<uint32_t>(matrix.shape[1]);
      const uint32_t own_rows = out.n_experts * own_n;
      DP_CO_TRY(const formats::TensorInfo* tensor, checked(matrix.name + ".weight", matrix.shape));
      DP_CO_TRY(const WeightFormat own_format, run_format(*tensor, own_n, out.k));
      const bool fits = rows + own_rows <= most_rows(own_format, out.k);
      if (!sources.empty() && (!use.stacks || own_format != format || own_n != n || !fits)) break;
      format = own_format;
      n = own_n;
      sources.push_back({tensor, 0, own_rows});
      label += (label.empty() ? "" : "+") + matrix.name;
      if (checkpoint_.find(matrix.name + ".bias")) {
        const std::vector<uint64_t> bias_shape = {matrix.shape[0], matrix.shape[1]};
        DP_CO_TRY([[maybe_unused]] const formats::TensorInfo* bias,
                  checked(matrix.name + ".bias", bias_shape));
        DP_CO_TRY(const std::vector<float> values, co_await host_vector(matrix.name + ".bias"));
        biases.resize(size_t{n_experts} * n * (sources.size() - 1), 0.0f);
        biases.insert(biases.end(), values.begin(), values.end());
      }
      rows += own_rows;
    }
    Projection::Part part{
        .weight = {}, .bias = {}, .column = out.n, .matrices = static_cast<uint32_t>(sources.size())};
    out.n += use.n_used * n * part.matrices;
    if (!biases.empty()) biases.resize(size_t{n_experts} * n * part.matrices, 0.0f);
    if (use.slots != 0) {
      PagedWeight paged{.tag = use.tag, .name = label, .weight = {}, .n = n, .biases = std::move(biases)};
      for (const Source& source : sources) paged.tensors.push_back(source.tensor);
      DP_CO_TRY(part.weight, co_await place_stacked(label, format, std::move(sources), out.k,
                                                    weights_together_, n, &paged.places));
      paged.weight = part.weight;
      if (!paged.biases.empty()) {
        DP_CO_TRY(const Place place, co_await make_place(label + ".bias", uint64_t{rows} * sizeof(float),
                                                         true, vectors_together_));
        paged.bias = {.buffer = place.buffer, .offset = place.offset};
        part.bias = view_of(place);
      }
      paged_.push_back(std::move(paged));
    } else {
      DP_CO_TRY(part.weight,
                co_await place_stacked(label, format, std::move(sources), out.k, weights_together_, n));
      if (!biases.empty()) {
        DP_CO_TRY(part.bias, co_await floats(label + ".bias", biases));
      }
    }
    out.parts.push_back(std::move(part));
  }
  co_return out;
}

// An expert, and a run of rows that is taken out, begins at a tile: those of other sizes lie in rows.
Result<WeightFormat> WeightLoader::run_format(const formats::TensorInfo& tensor, uint32_t n,
                                              uint32_t k) const {
  DP_TRY(const WeightFormat format, format_of(tensor, k));
  if (!weight_format_info(format).tiled || n % kTileRows == 0) return format;
  return formats::device_format(tensor.type, k, {.exact = layout_.exact, .tiles = false});
}

Task<Result<kernels::Weight>> WeightLoader::matrix(formats::StoredTensor matrix) {
  DP_CO_TRY(const formats::TensorInfo* tensor, checked(matrix.name + ".weight", matrix.shape));
  DP_CO_TRY(const WeightFormat format, format_of(*tensor, k_of(matrix)));
  std::vector<Source> sources = {{tensor, 0, rows_of(matrix)}};
  Together apart;
  co_return co_await place_stacked(matrix.name, format, std::move(sources), k_of(matrix), apart);
}

Task<Result<std::vector<float>>> WeightLoader::host_vector(std::string full_name) {
  const formats::TensorInfo* tensor = checkpoint_.find(full_name);
  if (!tensor) co_return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is missing.", full_name.c_str());
  uint64_t count = 1;
  for (const uint64_t extent : tensor->shape) count *= extent;
  DP_CO_TRY(const std::vector<uint8_t> bytes, co_await checkpoint_.read_tensor(*tensor));
  std::vector<float> out(count);
  DP_CO_CHECK(formats::dequantise(tensor->type, bytes.data(), out.data(), count));
  DP_CO_CHECK(stream_.note_read(tensor->bytes));
  co_return out;
}

Task<Result<kernels::TensorView>> WeightLoader::norm(formats::StoredTensor norm) {
  std::vector<formats::StoredTensor> one;
  one.push_back(std::move(norm));
  return norms(std::move(one));
}

Task<Result<kernels::TensorView>> WeightLoader::norms(std::vector<formats::StoredTensor> norms) {
  std::vector<uint32_t> words;
  std::string label;
  for (const formats::StoredTensor& norm : norms) {
    DP_CO_TRY([[maybe_unused]] const formats::TensorInfo* tensor, checked(norm.weight_name(), norm.shape));
    DP_CO_TRY(std::vector<float> floats, co_await host_vector(norm.weight_name()));
    if (norm.is_log) std::ranges::transform(floats, floats.begin(), [](float v) { return -std::exp(v); });
    for (const float value : floats) words.push_back(std::bit_cast<uint32_t>(value + norm.offset));
    label += (label.empty() ? "" : "+") + norm.name;
  }
  co_return co_await values(std::move(label), std::move(words));
}

Task<Result<kernels::TensorView>> WeightLoader::floats(std::string name, std::vector<float> numbers) {
  std::vector<uint32_t> words(numbers.size());
  std::memcpy(words.data(), numbers.data(), numbers.size() * sizeof(float));
  co_return co_await values(std::move(name), std::move(words));
}

Task<Result<kernels::TensorView>> WeightLoader::values(std::string name, std::vector<uint32_t> words) {
  words.resize((words.size() + 3) / 4 * 4, 0);  // whole vec4s, as kernels read them
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  DP_CO_TRY(const Place place,
            co_await make_place(std::move(name), words.size() * 4, true, vectors_together_));
  DP_CO_CHECK(co_await device_.upload(*place.buffer, place.offset, std::span(bytes, words.size() * 4)));
  co_return view_of(place);
}

}  // namespace doppler::model
