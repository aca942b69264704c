#include "layers/pooled.h"

namespace doppler::layers {
namespace {

constexpr float kFlat = 1e-30f;  // a scale of logits whose exponentials are 1 in f32, whatever q and k are

// The product of the class head's matrix and the mean of all states, [R, H], the same in each row. The matrix is
// linear, so the mean may be taken after it. Attention with equal weights gives that mean. The last layer's cache is
// free by then.
Value mean_through_class_dense(Builder& b, Value h) {
  const graph::Matrix dense =
      b.graph.matrix(TensorId::kClassDense, 0, b.config.hidden_dim, b.config.hidden_dim);
  auto [q, k, v] = b.graph.linear(h, {dense, dense, dense});  // [R, H] each
  graph::Attention equal = b.attention_numbers(b.config.n_layers - 1);
  equal.scale = kFlat;
  equal.sliding_window = 0;
  return b.graph.attention(q, k, v, equal);
}

Value class_head(Builder& b, Value h) {
  const formats::PoolingConfig& pooling = b.config.pooling;
  if (pooling.has_class_dense) {
    h = pooling.kind == formats::Pooling::kMean
            ? mean_through_class_dense(b, h)
            : b.linear(h, TensorId::kClassDense, 0, b.config.hidden_dim);  // [R, H]
    h = b.graph.activate(h, pooling.has_class_norm ? ActivationFn::kGeluErf : ActivationFn::kTanh);
  }
  if (pooling.has_class_norm) h = b.layer_norm(h, TensorId::kClassNorm, 0);  // [R, H]
  return b.linear(h, TensorId::kClassOut, 0, pooling.n_classes);             // [R, C]
}

}  // namespace

void pooled(Builder& b, Value h) {
  const formats::PoolingConfig& pooling = b.config.pooling;
  const TensorId dense[] = {TensorId::kDense1, TensorId::kDense2};
  for (size_t i = 0; i < pooling.dense_dims.size(); ++i) {
    h = b.linear(h, dense[i], 0, pooling.dense_dims[i]);  // [R, D]
  }
  b.graph.set_logits(pooling.n_classes != 0 ? class_head(b, h) : h);
}

}  // namespace doppler::layers
