// Embeddings of each layer that do not lie on the GPU: a step reads one row a token of a table of vocabulary x (layers
// x numbers). The table stays in its file. The rows of a step's tokens come to a buffer before the step, in their
// order, so that the gather reads row i of the buffer for the step's row i. So each step needs its tokens on the host:
// those of the step before are collected first. Native; a browser has no file to read rows from at once
// (device_model_paged_web.cpp).
// Read next: weight_loader.h (host_matrix), lowering/bound_weights.h (HostRows).
#pragma once

#include <span>
#include <vector>

#include "formats/checkpoint.h"
#include "gpu/device.h"
#include "kernels/linear/linear.h"
#include "model/expert_pager.h"

namespace doppler::model {

// True if this build can keep such tables on the host.
bool has_host_tables();

class HostTable {
 public:
  // `room`: as many rows as a step has at most, and a place a piece. Device, file and the buffers of the places must
  // outlive the table.
  HostTable(gpu::Device& device, formats::ByteSource& file, const formats::TensorInfo& tensor,
            kernels::Weight room, std::vector<PagedWeight::Place> places)
      : device_(device), file_(file), tensor_(tensor), room_(std::move(room)), places_(std::move(places)) {}

  // Waits until all rows may be read; a file with hashes is compared with them.
  Task<Result<void>> prepare();
  // Writes the rows of the next step's tokens; those of tokens outside the table are zeros.
  Result<void> write(std::span<const uint32_t> tokens);

 private:
  Result<void> gather(std::span<const uint32_t> tokens, const WeightLayout& layout);

  gpu::Device& device_;
  formats::ByteSource& file_;
  const formats::TensorInfo& tensor_;
  kernels::Weight room_;
  std::vector<PagedWeight::Place> places_;
  std::vector<uint8_t> plane0_, plane1_;  // of the rows that are written
};

}  // namespace doppler::model
