// Records plan commands into one command encoder: dispatches share a compute pass until a copy ends it.
// Used by submit() (replay_native.cpp) and time_commands() (timing_native.cpp).
#pragma once

#include <algorithm>

#include "gpu/device_native.h"

namespace doppler::gpu {

// Axis and rows per group of a dispatch's seventh word (plan.h).
inline constexpr uint32_t kAxisShift = 28;
inline constexpr uint32_t kRowsMask = (1u << kAxisShift) - 1;

// Keeps what is set in the current pass, to set nothing twice.
class Recorder {
 public:
  Recorder(NativeDevice& device, WGPUCommandEncoder encoder)
      : device_(device), api_(device.api()), encoder_(encoder) {}
  ~Recorder() { end_pass(); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Result<void> replay(const Plan& plan, uint32_t rows) {
    const size_t whole = plan.words.size() / kPlanCommandWords * kPlanCommandWords;
    for (size_t at = 0; at < whole; at += kPlanCommandWords) {
      const uint32_t* words = plan.words.data() + at;
      DP_CHECK_WHILE(words[0] == kDispatch ? dispatch(words, rows) : copy(words, rows),
                     "replaying command %zu of plan \"%s\"", at / kPlanCommandWords, plan.name.c_str());
    }
    return {};
  }

  Result<void> dispatch(const uint32_t* words, uint32_t rows) {
    const uint32_t pipeline = words[1];
    const uint32_t group = words[2];
    if (pipeline >= device_.pipelines_.size() || group >= device_.groups_.size() || !device_.groups_[group]) {
      return fail(ErrorKind::kInternal, "Pipeline %u or bind group %u does not exist or lost a buffer.",
                  pipeline, group);
    }
    uint32_t grid[3] = {words[3], words[4], words[5]};
    if (const uint32_t rows_per_group = words[6] & kRowsMask; rows_per_group != 0) {
      grid[(words[6] >> kAxisShift) % 3] = (rows + rows_per_group - 1) / rows_per_group;
    }
    if (std::max({grid[0], grid[1], grid[2]}) > device_.caps_.max_workgroups) {
      return fail(ErrorKind::kInternal,
                  "A grid of %ux%ux%u workgroups is larger than the device allows (%u).", grid[0], grid[1],
                  grid[2], device_.caps_.max_workgroups);
    }
    if (!pass_) begin_pass(nullptr);
    if (pipeline != pipeline_) {
      api_.ComputePassEncoderSetPipeline(pass_, device_.pipelines_[pipeline].handle);
      pipeline_ = pipeline;
    }
    if (group != group_) {
      api_.ComputePassEncoderSetBindGroup(pass_, 0, device_.groups_[group], 0, nullptr);
      group_ = group;
    }
    api_.ComputePassEncoderDispatchWorkgroups(pass_, grid[0], grid[1], grid[2]);
    ++dispatches_;
    return {};
  }

  Result<void> copy(const uint32_t* words, uint32_t rows) {
    const uint64_t bytes = uint64_t{words[5]} * 4 * (words[7] ? rows : 1);
    return copy_range(words[1], uint64_t{words[2]} * 4, words[3], uint64_t{words[4]} * 4, bytes);
  }

  Result<void> copy_range(uint32_t from, uint64_t from_offset, uint32_t to, uint64_t to_offset,
                          uint64_t bytes) {
    DP_TRY(const NativeBuffer* const source, device_.find_buffer(from));
    DP_TRY(const NativeBuffer* const target, device_.find_buffer(to));
    DP_CHECK(device_.check_range(*source, from_offset, bytes, "copy"));
    DP_CHECK(device_.check_range(*target, to_offset, bytes, "overwrite"));
    end_pass();
    api_.CommandEncoderCopyBufferToBuffer(encoder_, source->handle, from_offset, target->handle, to_offset,
                                          bytes);
    return {};
  }

  void begin_pass(const WGPUPassTimestampWrites* timestamps) {
    WGPUComputePassDescriptor descriptor = WGPU_COMPUTE_PASS_DESCRIPTOR_INIT;
    descriptor.timestampWrites = timestamps;
    pass_ = api_.CommandEncoderBeginComputePass(encoder_, &descriptor);
  }

  void end_pass() {
    if (!pass_) return;
    api_.ComputePassEncoderEnd(pass_);
    api_.ComputePassEncoderRelease(pass_);
    pass_ = nullptr;
    pipeline_ = group_ = UINT32_MAX;
  }

  uint64_t dispatches() const { return dispatches_; }

 private:
  NativeDevice& device_;
  const Provider& api_;
  WGPUCommandEncoder encoder_;
  WGPUComputePassEncoder pass_ = nullptr;
  uint32_t pipeline_ = UINT32_MAX;
  uint32_t group_ = UINT32_MAX;
  uint64_t dispatches_ = 0;
};

}  // namespace doppler::gpu
