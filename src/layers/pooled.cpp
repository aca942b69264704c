#include "layers/pooled.h"

namespace doppler::layers {

void pooled(Builder& b, Value h) {
  const formats::PoolingConfig& pooling = b.config.pooling;
  const TensorId dense[] = {TensorId::kDense1, TensorId::kDense2};
  for (size_t i = 0; i < pooling.dense_dims.size(); ++i) {
    h = b.linear(h, dense[i], 0, pooling.dense_dims[i]);  // [R, D]
  }
  if (pooling.has_class_dense) {
    h = b.graph.activate(b.linear(h, TensorId::kClassDense, 0, b.config.hidden_dim), ActivationFn::kTanh);
  }
  if (pooling.n_classes != 0) h = b.linear(h, TensorId::kClassOut, 0, pooling.n_classes);
  b.graph.set_logits(h);
}

}  // namespace doppler::layers
