// The capability record of an opened device: everything a kernel table may look at. The device fills it once and
// guesses nothing: limits are what it granted, and the subgroup size is measured where the provider does not tell it.
#pragma once

#include <cstdint>
#include <string>

namespace doppler::gpu {

// The compute units that a device has if it does not tell them, as no browser does: those of the GPUs on which the
// sizes of kernels were measured. Too many workgroups wait for each other on a small device; too few would leave a
// large one idle.
inline constexpr uint32_t kAssumedComputeUnits = 132;

enum class AdapterType : uint8_t { kUnknown, kDiscrete, kIntegrated, kCpu };
const char* adapter_type_name(AdapterType type);  // "discrete GPU", "CPU", ...

// The way in which Device::upload works. Native devices use a ring of staging buffers or the queue's own writes
// (uploads_native.cpp); in a browser the host uploads. kNone: the device keeps no uploads (recording_device.h), so
// weights need not be read.
enum class UploadWay : uint8_t { kHost, kRing, kQueue, kNone };
const char* upload_way_name(UploadWay way);  // "host", "ring", "queue", "none"

// The compiler of the provider, as far as WGSL must differ; only the composer (wgsl_composer.h) reads it.
enum class WgslDialect : uint8_t { kTint, kNaga };

struct Caps {
  std::string provider;  // "dawn", "wgpu", "browser", "node"
  std::string adapter;   // "NVIDIA H200"
  std::string vendor;
  std::string architecture;  // "hopper", may be empty
  std::string driver;        // "580.159.04", as the provider describes it
  std::string backend;       // "vulkan", "metal", "d3d12"
  AdapterType type = AdapterType::kUnknown;
  WgslDialect dialect = WgslDialect::kTint;

  bool f16 = false;  // WGSL `enable f16` and f16 in storage
  bool subgroups = false;
  uint32_t subgroup_min = 0;  // invocations; both 0 without subgroups
  uint32_t subgroup_max = 0;
  bool dp4a = false;  // packed 4x8 integer dot product (dot4I8Packed)
  bool timestamps = false;
  bool matrix_f16 = false;  // subgroup matrices, f16 inputs, f32 result, 16x16x16

  UploadWay uploads = UploadWay::kHost;

  uint64_t max_buffer_bytes = 0;
  uint64_t max_binding_bytes = 0;    // of one storage binding
  uint32_t max_storage_buffers = 0;  // per dispatch
  uint32_t max_invocations = 0;      // per workgroup
  uint32_t max_workgroup_size_x = 0;
  uint32_t max_workgroup_bytes = 0;  // var<workgroup> memory
  uint32_t max_workgroups = 0;       // per dimension
  uint32_t binding_alignment = 256;  // bytes, of offsets of storage and uniform bindings
  uint64_t memory_bytes = 0;         // of the device's largest heap; 0: the provider does not tell
  // Multiprocessors, compute units or cores, as the vendor calls what runs a workgroup. 0: the device does not tell.
  uint32_t compute_units = 0;

  uint32_t filling_units() const { return compute_units == 0 ? kAssumedComputeUnits : compute_units; }
};

}  // namespace doppler::gpu
