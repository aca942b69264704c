// The forward pass of a model as a list of operations on values, each a matrix [rows, n] of activations. Families
// (src/families) write it as the paper has it; lowering (src/lowering) reads it and decides which kernels run. Rows are
// open: one graph serves decoding (one row), a few rows and prefill chunks.
//
//   Graph g;
//   Value x = g.embed(table, 1.0f);                            // [R, H]
//   Value h = g.rms_norm(x, norm, eps);                        // [R, H]
//   auto [q, k, v] = g.linear(h, {w.q, w.k, w.v});             // [R, Q], [R, K], [R, K]
//
// Shapes that do not fit are mistakes of a family, not of a file: error() keeps the first one, and operations after it
// are not checked. Read next: ops.h, families/llama.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/tensor_id.h"
#include "graph/ops.h"

namespace doppler::graph {

// A weight as the checkpoint names it and its shape, outermost first: [n, k] of a matrix, [experts, n, k] of as many as
// there are experts, [n] of a vector.
struct WeightInfo {
  TensorId tensor = TensorId::kEmbedding;
  uint32_t layer = 0;
  std::vector<uint32_t> shape;

  std::string label() const { return tensor_label(tensor, layer); }
};

struct ValueInfo {
  uint32_t columns = 0;
  uint32_t node = 0;  // that makes it
};

struct Node {
  Operation operation;
  std::vector<Value> inputs, outputs;
  std::vector<Matrix> matrices;  // of Linear and Embed
  std::vector<Vector> vectors;   // of norms
  std::string op_label;          // "blk.3.attn_qkv": the same in profiles, graphs and errors

  OpKind kind() const { return static_cast<OpKind>(operation.index()); }
  // Attention that fills no cache.
  bool reads_earlier_cache() const { return kind() == OpKind::kAttention && inputs.size() == 1; }
  // True if it moves a state or a cache on, so that it is recorded even if its result is not read.
  bool has_memory() const {
    return has_state(kind()) || (kind() == OpKind::kAttention && !reads_earlier_cache());
  }
};

class Graph {
 public:
  // Declares a weight. The same tensor of the same layer is declared once.
  Matrix matrix(TensorId tensor, uint32_t layer, uint32_t n, uint32_t k);
  Matrix expert_matrices(TensorId tensor, uint32_t layer, uint32_t n_experts, uint32_t n, uint32_t k);
  Vector vector(TensorId tensor, uint32_t layer, uint32_t n);
  Vector vectors(TensorId tensor, uint32_t layer, uint32_t count, uint32_t n);  // [count, n], read in f32

  // The embeddings of the step's tokens, or of the tokens after them: [R, k of the table].
  Value embed(Matrix table, float scale, bool is_next = false);
  Value rms_norm(Value x, Vector weight, float eps);  // [R, n]
  Value head_norm(Value x, Vector weight,
                  float eps);  // RMSNorm of each head of as many columns as the weight
  Value head_norm(Value x, uint32_t head_dim, float eps);  // without a weight
  // bias: or an invalid one.
  Value layer_norm(Value x, Vector weight, Vector bias, float eps);  // [R, n]
  // positions: [positions, n]; types: [types, n].
  Value add_positions(Value x, Vector positions, Vector types);  // [R, n]
  Value activate(Value x, ActivationFn activation);              // [R, n]
  // For models that see: images.cpp.
  Value input(uint32_t index, uint32_t columns);          // [R, columns]
  Value add_table_rows(Value x, Vector table);            // [R, n]; table: [entries, n]
  Value image_rows(Value x, const ImageRows& images);     // [R, n]
  Value mean_parts(Value x, uint32_t columns);            // [R, columns]
  Value clamp(Value x, Vector limits, uint32_t first);    // [R, n]
  Value standardise(Value x, Vector mean, Vector scale);  // [R, n]
  Value linear(Value x, Matrix matrix);                   // x W^T + b, b where the checkpoint has one
  template <size_t N>
  std::array<Value, N> linear(Value x, const Matrix (&matrices)[N]) {  // of one x
    std::array<Value, N> out{};
    const std::vector<Value> made = add_linear(x, matrices);
    for (size_t i = 0; i < N && i < made.size(); ++i) out[i] = made[i];
    return out;
  }
  // The outputs of one matrix as runs of so many columns each, all in all its rows.
  template <size_t N>
  std::array<Value, N> linear(Value x, Matrix matrix, const uint32_t (&columns)[N]) {
    std::array<Value, N> out{};
    const std::vector<Value> made = add_split_linear(x, matrix, columns);
    for (size_t i = 0; i < N && i < made.size(); ++i) out[i] = made[i];
    return out;
  }
  Value rope(Value x, const Rope& rope);  // each head of x rotated by the row's position
  Value attention(Value q, Value k, Value v,
                  const Attention& attention,                   // k and v join the layer's cache first
                  std::optional<Vector> sinks = std::nullopt);  // a logit of each head in its denominator
  Value attention(Value q, const Attention& attention);         // over the cache of an earlier layer
  Value gated(Value gate, Value up, ActivationFn activation, float limit = 0);  // activation(gate) * up
  Value add(Value x, Value y);
  // weight: [channels, kernel]; bias: [channels], or an invalid one.
  Value causal_conv(Value x, Vector weight, Vector bias, const CausalConv& conv);
  // a and b: [R, n_heads], of decay and rate; decay (A, negative) and time_bias: [n_heads].
  Value gated_delta(Value x, Value a, Value b, Vector decay, Vector time_bias, const GatedDelta& delta);
  Value mamba2(Value x, Value dt, Vector decay, Vector time_bias, Vector skip, const Mamba2& mamba);
  Value gated_norm(Value x, Value gate, Vector weight, const GatedNorm& norm);
  Value output_gate(Value x, Value gate);
  Value every_expert(uint32_t n);                  // routes; one value, however often it is asked for
  Value head_part(Value x, const HeadPart& part);  // [R, heads * n]
  // absorbed: [R, n_heads * rank]; latent: [R, rank]; key: [R, rope_dim]. Made: q, k and v of attention on one head of
  // rope_dim + rank values, the first rope_dim still to be rotated.
  std::array<Value, 3> latent_heads(Value q, Value absorbed, Value latent, Value key,
                                    const LatentHeads& heads);
  Value multiply(Value x, Value u, ActivationFn activation = ActivationFn::kNone);  // activation(x) * u
  Value multiply(Value x, Vector weight);                                           // of n values, or of one
  Value slice(Value x, uint32_t first, uint32_t columns);
  Value sparsify(Value x, float deviations);
  Value concat(Value x, Value y);  // [R, columns of x and of y]
  using Streams = std::array<Value, kAltupStreams>;
  Streams altup_streams(const Streams& x);  // the first, and its projections, which get its magnitude
  Value altup_mean(const Streams& x);       // the mean of the first and the others' projections
  // router: [R, kAltupStreams]; weight: [kAltupStreams^2, kAltupStreams]. added: to all streams but the first.
  Streams altup_predict(const Streams& x, std::optional<Value> added, Value router, Vector weight,
                        const AltupPredict& predict);
  // made: what the layer made of the first prediction; weight: [kAltupStreams, kAltupStreams].
  Streams altup_correct(const Streams& predicted, Value made, Value router, Vector weight,
                        const AltupCorrect& correct);
  Value scale(Value x, const Scale& scale);
  Value query_scale(Value q, const QueryScale& scale);
  Value xielu(Value x, Vector numbers);  // of four: p, n, b, e
  // The experts of router logits [R, experts]. bias: added to the scores only for the choice; scales: factors of each
  // expert's weight.
  Value route(Value logits, Route route, std::optional<Vector> bias = std::nullopt,
              std::optional<Vector> scales = std::nullopt);
  // x: [R, k], or [R, n_used * k], a part for each slot. The outputs of slot after slot of a matrix: [R, n_used * n].
  template <size_t N>
  std::array<Value, N> expert_linear(Value x, Value routes, const Matrix (&matrices)[N]) {
    std::array<Value, N> out{};
    const std::vector<Value> made = add_expert_linear(x, routes, matrices);
    for (size_t i = 0; i < N && i < made.size(); ++i) out[i] = made[i];
    return out;
  }
  // x: [R, n_used * n]. shared: of an expert that sees every row; gate: [R, 1], with shared.
  Value expert_sum(Value x, Value routes, std::optional<Value> shared = std::nullopt,
                   std::optional<Value> gate = std::nullopt);  // [R, n]
  Value logits_rows(Value x);  // the rows that get logits: all, the last or none, as the plan says
  // From here on nodes belong to the next-token layer: it reads the rows' hidden values and the tokens after them,
  // which are chosen by the logits.
  void begin_next() { next_begin_ = static_cast<uint32_t>(nodes_.size()); }
  void set_next_logits(Value logits) { next_logits_ = logits; }
  // The model's result: logits, or a text model's states that will be pooled.
  void set_logits(Value logits) { logits_ = logits; }
  // The residual stream: what enters the first layer, then what each layer leaves.
  void mark_hidden(Value x) { hidden_.push_back(x); }

  // The part of the model with layers [first, end), whose borders are the marks of the residual stream. If `first` is
  // not 0, it begins with input 0, the stream before that layer. If `end` is not the number of layers, its result is
  // the stream after them. Error: one of the layers reads something else that is made before them.
  Result<Graph> layers(uint32_t first, uint32_t end) const;

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<WeightInfo>& weights() const { return weights_; }
  const WeightInfo& info(Matrix matrix) const { return weights_[matrix.index]; }
  const WeightInfo& info(Vector vector) const { return weights_[vector.index]; }
  const ValueInfo& info(Value value) const { return values_[value.index]; }
  uint32_t value_count() const { return static_cast<uint32_t>(values_.size()); }
  std::span<const Value> hidden() const { return hidden_; }
  Value logits() const { return logits_; }
  // The first node of the next-token layer (the number of nodes if there is none), and its logits (invalid if there are
  // none).
  uint32_t next_begin() const { return std::min(next_begin_, static_cast<uint32_t>(nodes_.size())); }
  Value next_logits() const { return next_logits_; }
  // Indices of the nodes that read a value, in order.
  std::vector<uint32_t> readers(Value value) const;
  const Result<void>& error() const { return error_; }

 private:
  std::vector<Value> add_linear(Value x, std::span<const Matrix> matrices);
  std::vector<Value> add_split_linear(Value x, Matrix matrix, std::span<const uint32_t> columns);
  std::vector<Value> add_expert_linear(Value x, Value routes, std::span<const Matrix> matrices);
  // The operation that made routes. If none did, an error and an empty operation.
  ExpertLinear experts_of(Value routes);
  uint32_t declare(TensorId tensor, uint32_t layer, std::vector<uint32_t> shape);
  std::vector<Value> add_node(Node node, std::span<const uint32_t> columns);
  Value add_one(Node node, uint32_t columns);
  uint32_t columns(Value value) const;
  std::string label_of(Value value) const;  // its maker's
  std::vector<Value> add_streams(Operation operation, std::vector<Value> inputs, std::vector<Vector> vectors,
                                 const char* label, bool is_one);
  Value add_scan(Value x, std::vector<Value> gates, std::vector<Vector> vectors, Operation operation,
                 uint32_t layer, uint32_t n_heads, uint32_t n_key_heads, uint32_t key_dim,
                 uint32_t value_dim);
  bool check(bool fits, const std::string& sentence);

  std::vector<Node> nodes_;
  std::vector<ValueInfo> values_;
  std::vector<WeightInfo> weights_;
  std::vector<Value> hidden_;
  Value logits_, next_logits_;
  uint32_t next_begin_ = UINT32_MAX;
  Result<void> error_;
};

}  // namespace doppler::graph
