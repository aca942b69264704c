// Mixtures whose experts do not all lie in GPU memory. Each layer has slots for some experts. A step is replayed in
// parts. After a layer's router the chosen ids come to the host. It uploads the missing experts, straight from the
// mapped file, and writes routes that name slots in place of experts; then the layer goes on. If there are several
// turns (expert_slots.h), each replays the layer's products; products of absent experts leave the results of other
// turns unchanged.
// Read next: gpu/plan_builder.h (begin_part), lowering/plain_experts.cpp.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "kernels/linear/linear.h"
#include "model/expert_slots.h"

namespace doppler::model {

// A weight of products with experts whose rows are slots' (kernels/moe/expert_linear.h).
struct PagedWeight {
  // Bytes of a buffer, from `offset` on, that hold a piece.
  struct Place {
    const gpu::Buffer* buffer = nullptr;
    uint64_t offset = 0;
  };
  uint32_t tag = 0;  // of the part that reads it (gpu::PlanPart)
  std::string name;  // for errors
  kernels::Weight weight;
  uint32_t n = 0;                                   // rows of one matrix of an expert
  std::vector<const formats::TensorInfo*> tensors;  // a matrix of all experts each
  std::vector<Place> places;                        // one a piece
  std::vector<float> biases;                        // of all experts: [matrices, experts, n]; empty: none
  Place bias;
};

// The costs of paging, since the load.
struct PagingFigures {
  uint64_t uses = 0, misses = 0;  // experts of a layer that a step wanted, and that were not there
  uint64_t bytes = 0;             // of the file that were uploaded
  double upload_seconds = 0, wait_seconds = 0;  // uploading, and waiting for routes
};

struct PagingShape {
  uint32_t n_experts = 0, n_used = 0, n_slots = 0;
  uint32_t rows = 0;        // of a step at most
  uint32_t least_rows = 0;  // kernels::Context::least_rows
};

// The buffers of a step's routes: lowering::PagedRoutes.
struct RouteBuffers {
  const gpu::Buffer *routes = nullptr, *slot_routes = nullptr, *slot_groups = nullptr;
};

// True if this build can page experts: a browser has no mapped files.
bool pages_experts();

class ExpertPager {
 public:
  // Device, checkpoint and buffers must outlive the pager. Errors: experts of a number format whose slots cannot be
  // written one by one.
  static Task<Result<std::unique_ptr<ExpertPager>>> make(gpu::Device& device,
                                                         const formats::Checkpoint& checkpoint,
                                                         std::vector<PagedWeight> weights, PagingShape shape,
                                                         RouteBuffers buffers);

  // Replays all parts of a plan but the last, and gives that: submitting it ends the step. One step at a time.
  // `before`: replayed once, before the plan; null: nothing.
  Task<Result<const gpu::Plan*>> run(const gpu::Plan& plan, uint32_t rows, const gpu::Plan* before = nullptr);

  const PagingShape& shape() const { return shape_; }
  const PagingFigures& figures() const { return figures_; }

 private:
  // Repacks one expert's matrix of a kind to `packed_`, whence it is copied to its slot.
  struct Repacking {
    DType from{};
    WeightFormat to{};
    uint32_t n = 0, k = 0;
    size_t plan = 0;
  };
  struct Page {
    std::vector<PagedWeight> weights;
    ExpertSlots slots;
  };

  ExpertPager(gpu::Device& device, const formats::Checkpoint& checkpoint, PagingShape shape,
              RouteBuffers buffers)
      : device_(device), checkpoint_(checkpoint), shape_(shape), buffers_(buffers) {}

  Task<Result<void>> prepare();
  Task<Result<std::vector<uint32_t>>> read_routes(std::span<const gpu::Work> works, uint32_t rows);
  std::vector<uint32_t> wanted(std::span<const uint32_t> routes) const;
  Task<Result<void>> bring(Page& page, ExpertSlots::Upload upload);
  Task<Result<void>> bring_tiles(const PagedWeight& weight, size_t matrix, std::span<const uint8_t> bytes,
                                 uint32_t slot);
  Task<Result<void>> bring_rows(const PagedWeight& weight, size_t matrix, std::span<const uint8_t> bytes,
                                uint32_t slot);
  Result<void> write_routes(const Page& page, const ExpertSlots::Turn& turn, std::span<const uint32_t> routes,
                            uint32_t max_rows);
  std::vector<uint32_t> groups_of(std::span<const uint32_t> slot_routes, uint32_t max_rows) const;
  const std::vector<gpu::Plan>& parts_of(const gpu::Plan& plan);

  gpu::Device& device_;
  const formats::Checkpoint& checkpoint_;
  const PagingShape shape_;
  const RouteBuffers buffers_;
  std::map<uint32_t, Page> pages_;  // by tag
  std::map<const gpu::Plan*, std::vector<gpu::Plan>> parts_;
  gpu::ReadbackRing readback_;
  gpu::Buffer raw_, packed_;  // of one expert's matrix
  std::vector<Repacking> repackings_;
  gpu::BuiltPlans built_;
  PagingFigures figures_;
};

}  // namespace doppler::model
