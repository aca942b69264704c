// Gives the tensors of a checkpoint GPU buffers in the layouts the kernels read (base/dtype.h). Several matrices that take
// the same input are stacked into one weight when their formats agree. Vectors are there at once; the bytes of matrices
// follow with stream(), so that plans can be recorded and compiled meanwhile.
// Read next: families/llama.cpp (a user), weight_stream.h (how the bytes get there).
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "formats/architectures/tensor_names.h"
#include "formats/checkpoint.h"
#include "formats/quant/repack.h"
#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "kernels/linear/linear.h"
#include "model/memory_plan.h"
#include "model/weight_stream.h"

namespace doppler::model {

// y = x W^T + b for stacked W: one product where all parts share a format, otherwise one a format, side by side.
struct Projection {
  struct Part {
    kernels::Weight weight;
    kernels::TensorView bias;  // f32 [weight.n], or invalid
    uint32_t column = 0;       // of y, where this part's outputs begin
  };
  std::vector<Part> parts;
  uint32_t n = 0;  // outputs of all parts together
  uint32_t k = 0;
};

class WeightLoader {
 public:
  WeightLoader(gpu::Device& device, gpu::PlanBuilder& plan, const formats::Checkpoint& checkpoint,
               formats::LayoutPolicy layout, UploadProgress progress);

  // Matrices that read the same vector, with biases where the checkpoint has them; or all of them are one tensor, in
  // this order, where the checkpoint has them fused (tensor_names.h). All dimensions but the last are rows. Errors
  // name the tensor, its shape or type and what was expected.
  Task<Result<Projection>> projection(std::vector<formats::StoredTensor> matrices);
  Task<Result<kernels::Weight>> matrix(formats::StoredTensor matrix);
  // The weights of norms as f32, as the maths has them; several after one another.
  Task<Result<kernels::TensorView>> norms(std::vector<formats::StoredTensor> norms);
  Task<Result<kernels::TensorView>> norm(formats::StoredTensor norm);
  Task<Result<std::vector<float>>> host_vector(std::string full_name);
  // Values computed by the host (rope table).
  Task<Result<kernels::TensorView>> values(std::string name, std::vector<uint32_t> words);

  // From here on vectors and values lie beside one another in one buffer, as far as these bytes reach, and so do the
  // projections that follow begin_layer(), in as few buffers as hold whole layers and have at most `most_bytes`: for
  // kernels that read many of them (kernels/persistent).
  Task<Result<void>> place_together(TogetherBytes bytes, uint64_t most_bytes);
  Task<Result<void>> begin_layer(uint32_t layer);

  // Brings the bytes, once everything was asked for: prepare(), then run().
  WeightStream& stream() { return stream_; }
  std::deque<gpu::Buffer> take_buffers() { return std::move(buffers_); }
  uint64_t weight_bytes() const { return weight_bytes_; }  // on the GPU

 private:
  // Rows [first, first + rows) of a tensor.
  struct Source {
    const formats::TensorInfo* tensor;
    uint64_t first;
    uint32_t rows;
  };
  // Where a piece goes: a buffer in buffers_, and the byte of it where the piece begins.
  struct Place {
    const gpu::Buffer* buffer = nullptr;
    uint64_t offset = 0, bytes = 0;
  };
  // A buffer that several places share: what is left of it.
  struct Together {
    const gpu::Buffer* buffer = nullptr;
    uint64_t used = 0, bytes = 0;
  };
  // The tensor that holds all of `matrices`, without suffix; empty: each is its own.
  std::string fused_name(const std::vector<formats::StoredTensor>& matrices) const;
  Result<const formats::TensorInfo*> checked(const std::string& full_name,
                                             const std::vector<uint64_t>& shape) const;
  Result<WeightFormat> format_of(const formats::TensorInfo& tensor, uint32_t k) const;
  Task<Result<kernels::Weight>> place_stacked(std::string label, WeightFormat format,
                                              std::vector<Source> sources, uint32_t k, Together& together);
  Task<Result<gpu::Buffer*>> make_buffer(std::string name, uint64_t bytes, bool zeroed);
  Task<Result<Place>> make_place(std::string name, uint64_t bytes, bool zeroed, Together& together);
  kernels::TensorView view_of(const Place& place) {
    return plan_.external(*place.buffer).sub(place.offset, place.bytes);
  }

  gpu::Device& device_;
  gpu::PlanBuilder& plan_;
  const formats::Checkpoint& checkpoint_;
  formats::LayoutPolicy layout_;
  WeightStream stream_;
  uint64_t weight_bytes_ = 0;
  std::deque<gpu::Buffer> buffers_;               // stay where they are: stream_ points at them
  Together weights_together_, vectors_together_;  // of no bytes: everything has a buffer of its own
  std::vector<uint64_t> layer_bytes_;             // empty: layers are not placed together
  uint64_t most_together_ = 0;
};

// Records y = x W^T + b for all parts. y: f32 [rows, projection.n].
Result<void> record(kernels::Context& ctx, const Projection& projection, const kernels::Activation& x,
                    kernels::TensorView y, bool accumulate);
// y = activate(gate) * up, where the projection stacks gate and up. y: [rows, projection.n / 2], in the forms that are
// valid.
Result<void> record_gated(kernels::Context& ctx, const Projection& projection, const kernels::Activation& x,
                          const kernels::Activation& y, ActivationFn activate);
// Where a head left its result: all logits, or of each tile the best (kernels::Linear::best).
struct Logits {
  kernels::TensorView all, best;
  uint32_t best_count = 0;
};
// The logits of `head` into `logits`; with only_best, where the head's product can do it, only the best of each tile.
Result<Logits> record_head(kernels::Context& ctx, const Projection& head, const kernels::Activation& x,
                           kernels::TensorView logits, bool only_best);
// True if any part reads x.q8.
bool wants_q8(const kernels::Context& ctx, const Projection& projection);
bool wants_f16(const kernels::Context& ctx, const Projection& projection);  // ... x.f16
// True if nobody reads anything but x.f16.
bool wants_only_f16(const kernels::Context& ctx, const Projection& projection);
inline bool wants_only_f16(const kernels::Context& ctx, const kernels::Weight& weight) {
  return kernels::wants_f16(ctx, weight);
}
// True if record(), or with a gate record_gated() into 8 bits alone, makes its input itself (Activation::joined).
bool joins_norm(const kernels::Context& ctx, const Projection& projection, ActivationFn gate);
// True if record() joins the splits of attention in its input (Activation::splits).
bool joins_splits(const kernels::Context& ctx, const Projection& projection);
// Adds scratch for the forms of a [max_rows, k] activation that `reader` wants beside f32.
void add_forms(kernels::Context& ctx, const Projection& reader, uint32_t k, const std::string& label,
               kernels::Activation& activation);
// Scratch for the gated product's result, in the forms that `reader` needs.
kernels::Activation gated_scratch(kernels::Context& ctx, const Projection& projection,
                                  const Projection& reader, ActivationFn activate);

// An RMS norm of the residual stream and the projection that reads it.
struct NormedReader {
  kernels::TensorView weight;  // f32 [reader.k]
  float eps = 0;
  const Projection& reader;
  std::string role;                         // of the norm, where it is a kernel of its own
  ActivationFn gate = ActivationFn::kNone;  // what record_gated() will be given
  bool last_row_only = false;               // normalises the last row of a chunk into row 0
};
// norm(x): f32 [rows, k], and in 8 bits where the reader wants that.
Result<kernels::Activation> record_norm(kernels::Context& ctx, kernels::TensorView x,
                                        const NormedReader& next);
// x += y W^T + b, then norm(x): begun and finished by the two products themselves where both can.
Result<kernels::Activation> record_add_norm(kernels::Context& ctx, const Projection& projection,
                                            const kernels::Activation& y, kernels::TensorView x,
                                            const NormedReader& next);

}  // namespace doppler::model
