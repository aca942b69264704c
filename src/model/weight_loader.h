// Gives the tensors of a checkpoint GPU buffers in the layouts the kernels read (base/dtype.h). Several matrices that
// take the same input are stacked into one weight when their formats agree. Vectors are there at once; the bytes of
// matrices follow with stream(), so that plans can be recorded and compiled meanwhile. Read next: bind_weights.h (its
// user), weight_stream.h (how the bytes get there).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "formats/architectures/tensor_names.h"
#include "formats/checkpoint.h"
#include "formats/quant/repack.h"
#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "lowering/bound_weights.h"
#include "model/expert_pager.h"
#include "model/host_table.h"
#include "model/memory_estimate.h"
#include "model/weight_stream.h"

namespace doppler::model {

using lowering::Projection;

class WeightLoader {
 public:
  WeightLoader(gpu::Device& device, gpu::PlanBuilder& plan, const formats::Checkpoint& checkpoint,
               formats::LayoutPolicy layout, UploadProgress progress);

  // Matrices that read the same vector, with biases if the checkpoint has them. If the checkpoint has them fused, they
  // are one tensor, in this order (tensor_names.h). All dimensions but the last are rows. stacks: neighbours that share
  // a format become one weight; else each matrix is one. Errors name the tensor, its shape or type and the expected
  // one.
  Task<Result<Projection>> projection(std::vector<formats::StoredTensor> matrices, bool stacks = true);
  struct ExpertUse {
    uint32_t n_used = 0;  // experts a row
    bool stacks = true;
    // 0: all experts are loaded. Otherwise there is room for so many, and no expert is loaded: paged() says what goes
    // there.
    uint32_t slots = 0;
    uint32_t tag = 0;  // PagedWeight::tag
  };
  // Matrices of experts, [experts, n, k] each, that read the same vector. Those of one number format become one weight
  // if a binding holds both, else each is one, in pieces of whole experts.
  Task<Result<Projection>> experts(std::vector<formats::StoredTensor> matrices, ExpertUse use);
  std::vector<PagedWeight> take_paged() { return std::move(paged_); }
  Task<Result<kernels::Weight>> matrix(formats::StoredTensor matrix);
  // Room for `rows` rows of a matrix, which take_host_table() fills for each step.
  Task<Result<kernels::Weight>> host_matrix(formats::StoredTensor matrix, uint32_t rows);
  std::unique_ptr<HostTable> take_host_table() { return std::move(host_table_); }
  // The weights of norms as f32, as the maths has them; several after one another.
  Task<Result<kernels::TensorView>> norms(std::vector<formats::StoredTensor> norms);
  Task<Result<kernels::TensorView>> norm(formats::StoredTensor norm);
  Task<Result<std::vector<float>>> host_vector(std::string full_name);
  // Values computed by the host (rope table).
  Task<Result<kernels::TensorView>> values(std::string name, std::vector<uint32_t> words);

  // From here on vectors and values lie beside one another in one buffer, as far as these bytes reach. The projections
  // that follow begin_layer() lie together too, in as few buffers as hold whole layers and have at most `most_bytes`.
  // This is for kernels that read many weights (kernels/persistent).
  Task<Result<void>> place_together(TogetherBytes bytes, uint64_t most_bytes);
  Task<Result<void>> begin_layer(uint32_t layer);

  // Brings the bytes, once all requests were made: prepare(), then run().
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
  // The place of a piece: a buffer in buffers_, and the byte at which the piece begins.
  struct Place {
    const gpu::Buffer* buffer = nullptr;
    uint64_t offset = 0, bytes = 0;
  };
  // A buffer that several places share, and its free rest.
  struct Together {
    const gpu::Buffer* buffer = nullptr;
    uint64_t used = 0, bytes = 0;
  };
  // The tensor that holds all of `matrices`, without suffix; empty: each is its own.
  std::string fused_name(const std::vector<formats::StoredTensor>& matrices) const;
  Result<const formats::TensorInfo*> checked(const std::string& full_name,
                                             const std::vector<uint64_t>& shape) const;
  Result<WeightFormat> format_of(const formats::TensorInfo& tensor, uint32_t k) const;
  Result<WeightFormat> run_format(const formats::TensorInfo& tensor, uint32_t n, uint32_t k) const;
  Task<Result<kernels::TensorView>> floats(std::string name, std::vector<float> numbers);
  // places: the places are kept there and no bytes are streamed.
  Task<Result<kernels::Weight>> place_stacked(std::string label, WeightFormat format,
                                              std::vector<Source> sources, uint32_t k, Together& together,
                                              uint32_t rows_at_once = 1,
                                              std::vector<PagedWeight::Place>* places = nullptr);
  uint64_t most_rows(WeightFormat format, uint32_t k) const;  // that a binding holds
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
  std::deque<gpu::Buffer> buffers_;               // never moved: stream_ points at them
  Together weights_together_, vectors_together_;  // of no bytes: everything has a buffer of its own
  std::vector<PagedWeight> paged_;
  std::unique_ptr<HostTable> host_table_;
  std::vector<uint64_t> layer_bytes_;  // empty: layers are not placed together
  uint64_t most_together_ = 0;
};

}  // namespace doppler::model
