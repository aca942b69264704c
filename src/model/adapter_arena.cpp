#include "model/adapter_arena.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/text.h"
#include "formats/architectures/tensor_names.h"
#include "kernels/low_rank/low_rank.h"

namespace doppler::model {
namespace {

using graph::OpKind;
using kernels::LowRankDown;
using kernels::LowRankUp;

// If embeddings are tied, adapters still take the head for a matrix of its own.
TensorId adapted_id(const graph::Node& node, const graph::WeightInfo& weight) {
  const bool is_tied_head = node.kind() == OpKind::kLinear && weight.tensor == TensorId::kEmbedding;
  return is_tied_head ? TensorId::kOutput : weight.tensor;
}

bool has_any(const std::vector<AdapterPart>& parts, TensorId tensor, uint32_t layer) {
  return !shares_of(parts, tensor, layer).empty();
}

uint32_t total_rank(const std::vector<AdapterPart>& parts) {
  uint32_t rank = 0;
  for (const AdapterPart& part : parts) rank += part.adapter->rank();
  return rank;
}

uint32_t padded_rank(const AdapterRoom& room) {
  const uint32_t rank = std::max({room.rank, total_rank(room.first), 1u});
  return (rank + kernels::kRankStep - 1) / kernels::kRankStep * kernels::kRankStep;
}

bool is_affine(const std::vector<MatrixShare>& shares) {
  return std::ranges::any_of(shares, [](const MatrixShare& share) {
    return !share.matrix->bias.empty() || !share.matrix->magnitude.empty() ||
           !share.matrix->replaced_bias.empty();
  });
}

}  // namespace

uint64_t estimate_adapters(const AdapterRoom& room, const formats::ModelConfig& config) {
  if (room.slots == 0) return 0;
  const uint64_t rank = padded_rank(room);
  uint64_t floats = 0;
  for (const formats::PlacedTensor& placed : formats::tensors_of(config)) {
    const formats::StoredTensor stored = formats::stored_tensor(config, placed.row->id, placed.layer);
    const bool is_wanted =
        (room.everywhere && is_in_layer(placed.row->id)) || has_any(room.first, placed.row->id, placed.layer);
    if (stored.shape.size() != 2 || placed.row->is_norm || !is_wanted) continue;
    const uint64_t k = LowRankDown::padded_k(static_cast<uint32_t>(stored.shape[1]));
    const uint64_t b_vec4s = LowRankUp::b_vec4s(static_cast<uint32_t>(rank), /*is_affine=*/true);
    floats += rank * k + b_vec4s * 4 * stored.shape[0];
  }
  return floats * room.slots * sizeof(float);
}

uint64_t AdapterArena::a_floats(const Node& node) const {
  if (node.matrices.empty()) return uint64_t{node.k} * rank_;
  return uint64_t{rank_} * node.matrices.size() * LowRankDown::padded_k(node.k);
}

uint64_t AdapterArena::b_floats(const Node& node) const {
  return uint64_t{LowRankUp::b_vec4s(rank_, node.is_affine)} * node.n * 4;
}

std::optional<AdapterArena::Node> AdapterArena::node_of(const graph::Node& node, const graph::Graph& graph,
                                                        const AdapterRoom& room) const {
  Node out;
  if (node.kind() == OpKind::kEmbed) {
    const graph::WeightInfo& table = graph.info(node.matrices[0]);
    const bool has_embedding = std::ranges::any_of(
        room.first, [](const AdapterPart& part) { return part.adapter->embedding.has_value(); });
    if (table.tensor != TensorId::kEmbedding || !has_embedding) return std::nullopt;
    out.k = table.shape[0];
    out.n = table.shape[1];
    out.embedding_scale = std::get<graph::Embed>(node.operation).scale;
    return out;
  }
  if (node.kind() != OpKind::kLinear) return std::nullopt;
  bool is_wanted = false;
  for (const graph::Matrix& matrix : node.matrices) {
    const graph::WeightInfo& weight = graph.info(matrix);
    const TensorId id = adapted_id(node, weight);
    const std::vector<MatrixShare> shares = shares_of(room.first, id, weight.layer);
    const bool has_room = room.everywhere && is_in_layer(id) && id != TensorId::kRouter;
    is_wanted = is_wanted || has_room || !shares.empty();
    out.is_affine = out.is_affine || is_affine(shares);
    out.matrices.push_back({.tensor = id, .layer = weight.layer, .n = weight.shape[0], .first = out.n});
    out.n += weight.shape[0];
    out.k = weight.shape[1];
  }
  if (!is_wanted || out.matrices.size() > kernels::kMostAdaptedMatrices) return std::nullopt;
  return out;
}

Task<Result<gpu::Buffer*>> AdapterArena::buffer(const char* name, uint64_t bytes) {
  gpu::BufferDesc desc{.name = name, .bytes = (bytes + 255) / 256 * 256};
  const uint64_t most = std::min(device_->caps().max_binding_bytes, device_->caps().max_buffer_bytes);
  if (desc.bytes > most) {
    co_return fail(ErrorKind::kUnsupported,
                   "%u adapters of rank %u take %s for one matrix, but this device binds at most %s.", slots_,
                   rank_, format_bytes(desc.bytes).c_str(), format_bytes(most).c_str());
  }
  bytes_ += desc.bytes;
  auto creating = device_->create_buffer(std::move(desc));
  DP_CO_TRY(gpu::Buffer made, co_await std::move(creating));
  buffers_.push_back(std::move(made));
  co_return &buffers_.back();
}

Task<Result<lowering::Adapters>> AdapterArena::make(gpu::Device& device, gpu::PlanBuilder& builder,
                                                    const graph::Graph& graph,
                                                    const formats::Checkpoint& checkpoint,
                                                    const formats::ModelConfig& config,
                                                    const AdapterRoom& room, uint32_t sequences) {
  lowering::Adapters out;
  if (room.slots == 0) co_return out;
  if (room.slots > kMostAdapterSlots) {
    co_return fail(ErrorKind::kInvalidInput, "Room for %u adapters was asked for; allowed are at most %u.",
                   room.slots, kMostAdapterSlots);
  }
  device_ = &device;
  checkpoint_ = &checkpoint;
  config_ = &config;
  slots_ = room.slots;
  rank_ = padded_rank(room);
  auto making = buffer("adapters", std::max(1u, sequences) * sizeof(kernels::AdapterOfSequence));
  DP_CO_TRY(of_sequences_, co_await std::move(making));
  out.of_sequences = builder.external(*of_sequences_);
  out.products.resize(graph.nodes().size());
  for (uint32_t i = 0; i < graph.next_begin(); ++i) {
    std::optional<Node> node = node_of(graph.nodes()[i], graph, room);
    if (!node) continue;
    node->is_affine = node->is_affine || (room.everywhere && !node->matrices.empty());
    adapts_embedding_ = adapts_embedding_ || node->matrices.empty();
    auto making_a = buffer("adapters.a", a_floats(*node) * slots_ * sizeof(float));
    DP_CO_TRY(node->a, co_await std::move(making_a));
    auto making_b = buffer("adapters.b", b_floats(*node) * slots_ * sizeof(float));
    DP_CO_TRY(node->b, co_await std::move(making_b));
    node->is_written.resize(slots_);
    lowering::AdapterProduct product{.a = builder.external(*node->a),
                                     .b = builder.external(*node->b),
                                     .rank = rank_,
                                     .slots = slots_,
                                     .ends = {},
                                     .is_affine = node->is_affine};
    for (const Matrix& matrix : node->matrices) product.ends.push_back(matrix.first + matrix.n);
    out.products[i] = std::move(product);
    nodes_.push_back(std::move(*node));
  }
  for (const AdapterPart& part : room.first) {
    if (!part.adapter->replaced.empty()) replacing_ = part.adapter;
  }
  DP_CO_CHECK(check(room.first));
  co_return out;
}

Result<void> AdapterArena::check(const std::vector<AdapterPart>& parts) const {
  DP_CHECK(check_replaced(parts));
  if (const uint32_t rank = total_rank(parts); rank > rank_) {
    return fail(ErrorKind::kUnsupported,
                "Adapters of rank %u together do not fit a slot of rank %u; load the model with more "
                "(--lora-rank, in "
                "JavaScript adapterRank).",
                rank, rank_);
  }
  const auto has_room = [&](const formats::FittedMatrix& matrix) {
    const bool needs_affine = is_affine({{&matrix, 1}});
    return std::ranges::any_of(nodes_, [&](const Node& node) {
      return (node.is_affine || !needs_affine) &&
             std::ranges::any_of(node.matrices, [&](const Matrix& known) {
               return known.tensor == matrix.tensor && known.layer == matrix.layer;
             });
    });
  };
  for (const AdapterPart& part : parts) {
    if (parts.size() > 1 && !part.adapter->invocation_tokens.empty()) {
      return fail(ErrorKind::kUnsupported,
                  "The adapter %s is activated by tokens of the prompt, so that it cannot be used together "
                  "with others.",
                  part.adapter->name.c_str());
    }
    for (const formats::FittedMatrix& matrix : part.adapter->matrices) {
      if (has_room(matrix)) continue;
      return fail(ErrorKind::kUnsupported,
                  "The adapter %s adapts \"%s\", for which the model was loaded without room; load the model "
                  "with this "
                  "adapter (--lora).",
                  part.adapter->name.c_str(), printable(matrix.label).c_str());
    }
    if (part.adapter->embedding && !adapts_embedding_) {
      return fail(ErrorKind::kUnsupported,
                  "The adapter %s adapts the embedding, for which the model was loaded without room; load "
                  "the model with "
                  "this adapter (--lora).",
                  part.adapter->name.c_str());
    }
  }
  return {};
}

Result<void> AdapterArena::check_replaced(const std::vector<AdapterPart>& parts) const {
  bool has_it = !replacing_;
  for (const AdapterPart& part : parts) {
    if (part.adapter->replaced.empty()) continue;
    if (part.adapter != replacing_) {
      return fail(ErrorKind::kUnsupported,
                  "The adapter %s replaces whole tensors (\"%s\"); load a model with it (--lora) that no "
                  "request uses "
                  "without it.",
                  part.adapter->name.c_str(), printable(part.adapter->replaced.front().tensor).c_str());
    }
    has_it = true;
  }
  if (has_it) return {};
  return fail(
      ErrorKind::kUnsupported,
      "The model was loaded with the adapter %s, which replaces whole tensors, so that no request can do "
      "without it.",
      replacing_->name.c_str());
}

Task<Result<void>> AdapterArena::load(uint32_t slot, std::vector<AdapterPart> parts) {
  if (slot == 0 || slot > slots_) {
    co_return fail(ErrorKind::kInternal, "There is no adapter slot %u; there are 1 to %u.", slot, slots_);
  }
  DP_CO_CHECK(check(parts));
  for (Node& node : nodes_) {
    auto loading = load_node(node, slot - 1, parts);
    DP_CO_CHECK(co_await std::move(loading));
  }
  co_return Result<void>();
}

Task<Result<void>> AdapterArena::load_node(Node& node, uint32_t slot, const std::vector<AdapterPart>& parts) {
  std::vector<float> a(formats::host_size(a_floats(node))), b(formats::host_size(b_floats(node)));
  bool is_touched = false;
  if (node.matrices.empty()) {
    fill_embedding(node, parts, a, b, is_touched);
  } else {
    auto filling = fill_products(node, parts, a, b, is_touched);
    DP_CO_CHECK(co_await std::move(filling));
  }
  if (!is_touched && !node.is_written[slot] && !node.is_affine) co_return Result<void>();  // zeros already
  node.is_written[slot] = true;
  const std::span<const uint8_t> a_bytes = bytes_of(a), b_bytes = bytes_of(b);
  auto sending_a = device_->upload(*node.a, slot * a_bytes.size(), a_bytes);
  DP_CO_CHECK(co_await std::move(sending_a));
  auto sending_b = device_->upload(*node.b, slot * b_bytes.size(), b_bytes);
  co_return co_await std::move(sending_b);
}

Task<Result<void>> AdapterArena::fill_products(const Node& node, const std::vector<AdapterPart>& parts,
                                               std::vector<float>& a, std::vector<float>& b,
                                               bool& is_touched) {
  const uint64_t padded = LowRankDown::padded_k(node.k);
  // The place of number r of B's row n. Each vec4 holds four ranks, and each has all rows before the next.
  const auto place = [&](uint64_t n, uint32_t r) { return (uint64_t{r / 4} * node.n + n) * 4 + r % 4; };
  if (node.is_affine) {
    for (uint64_t n = 0; n < node.n; ++n) b[place(n, rank_)] = 1;
  }
  for (size_t m = 0; m < node.matrices.size(); ++m) {
    const Matrix& matrix = node.matrices[m];
    std::vector<MatrixShare> shares = shares_of(parts, matrix.tensor, matrix.layer);
    if (shares.empty()) continue;
    is_touched = true;
    DP_CO_TRY(formats::MatrixRows rows,
              formats::MatrixRows::find(*checkpoint_, *config_, matrix.tensor, matrix.layer));
    auto combining = combine(std::move(shares), std::move(rows));
    DP_CO_TRY(const CombinedMatrix made, co_await std::move(combining));
    for (uint32_t r = 0; r < made.rank; ++r) {
      std::copy_n(made.a.begin() + static_cast<ptrdiff_t>(uint64_t{r} * node.k), node.k,
                  a.begin() + static_cast<ptrdiff_t>((m * rank_ + r) * padded));
    }
    for (uint64_t n = 0; n < matrix.n; ++n) {
      for (uint32_t r = 0; r < made.rank; ++r) b[place(matrix.first + n, r)] = made.b[n * made.rank + r];
      if (!made.gain.empty()) b[place(matrix.first + n, rank_)] = made.gain[n];
      if (!made.constant.empty()) b[place(matrix.first + n, rank_ + 1)] = made.constant[n];
    }
  }
  co_return Result<void>();
}

void AdapterArena::fill_embedding(const Node& node, const std::vector<AdapterPart>& parts,
                                  std::vector<float>& a, std::vector<float>& b, bool& is_touched) const {
  uint32_t before = 0;
  for (const AdapterPart& part : parts) {
    if (!part.adapter->embedding) continue;
    is_touched = true;
    const formats::FittedMatrix& matrix = *part.adapter->embedding;
    const float scale = part.scale * matrix.scale * node.embedding_scale;
    for (uint32_t r = 0; r < matrix.rank; ++r) {
      const uint32_t at = before + r;
      for (uint64_t token = 0; token < node.k; ++token)
        a[token * rank_ + at] = matrix.a[r * uint64_t{node.k} + token];
      for (uint64_t n = 0; n < node.n; ++n) {
        b[(uint64_t{at / 4} * node.n + n) * 4 + at % 4] = scale * matrix.b[n * matrix.rank + r];
      }
    }
    before += matrix.rank;
  }
}

Result<void> AdapterArena::use(uint32_t sequence, uint32_t slot, uint32_t from) {
  if (slots_ == 0 && slot == 0) return {};
  if (slot > slots_) {
    return fail(ErrorKind::kInternal, "There is no adapter slot %u; there are 1 to %u.", slot, slots_);
  }
  const kernels::AdapterOfSequence own{.adapter = slot, .from = from};
  return device_->write(*of_sequences_, sequence * sizeof(own), doppler::bytes_of(own));
}

}  // namespace doppler::model
