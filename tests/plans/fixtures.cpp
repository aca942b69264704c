// The four capability records; see fixtures.h.
#include "fixtures.h"

namespace doppler::plans {
namespace {

using gpu::AdapterType;
using gpu::WgslDialect;

constexpr uint64_t kMiB = 1ull << 20;
constexpr uint64_t kGiB = 1ull << 30;

const Fixture kFixtures[] = {
    // NVIDIA H200 under Dawn: docs/results/2026-11-22-h200-graph/devices.log. 132 multiprocessors.
    {.name = "h200",
     .caps = {.provider = "dawn",
              .adapter = "NVIDIA H200",
              .vendor = "nvidia",
              .backend = "vulkan",
              .type = AdapterType::kDiscrete,
              .dialect = WgslDialect::kTint,
              .f16 = true,
              .subgroups = true,
              .subgroup_min = 32,
              .subgroup_max = 32,
              .dp4a = true,
              .timestamps = true,
              .matrix_f16 = true,
              .max_buffer_bytes = 1024 * kGiB,
              .max_binding_bytes = 2 * kGiB - 4,
              .max_storage_buffers = 16,
              .max_invocations = 1024,
              .max_workgroup_size_x = 1024,
              .max_workgroup_bytes = 49152,
              .max_workgroups = 65535,
              .binding_alignment = 256,
              .memory_bytes = 150754820096,
              .compute_units = 132},
     .co_resident_groups = 132},
    // Mesa's lavapipe (LLVM 15, 256 bits) under wgpu-native: `doppler devices --json --webgpu wgpu`.
    {.name = "lavapipe",
     .caps = {.provider = "wgpu",
              .adapter = "llvmpipe (LLVM 15.0.6, 256 bits)",
              .vendor = "llvmpipe",
              .backend = "vulkan",
              .type = AdapterType::kCpu,
              .dialect = WgslDialect::kNaga,
              .f16 = true,
              .subgroups = true,
              .subgroup_min = 8,
              .subgroup_max = 8,
              .dp4a = true,
              .timestamps = true,
              .max_buffer_bytes = 2 * kGiB - 4,
              .max_binding_bytes = 128 * kMiB,
              .max_storage_buffers = 32,
              .max_invocations = 1024,
              .max_workgroup_size_x = 1024,
              .max_workgroup_bytes = 32768,
              .max_workgroups = 65535,
              .binding_alignment = 256},
     .co_resident_groups = 2},
    // A discrete GPU that has neither subgroups nor f16 nor packed products, and the H200's limits but for workgroup
    // memory.
    {.name = "plain",
     .caps = {.provider = "dawn",
              .adapter = "a discrete GPU without subgroups and f16",
              .backend = "vulkan",
              .type = AdapterType::kDiscrete,
              .dialect = WgslDialect::kTint,
              .max_buffer_bytes = 1024 * kGiB,
              .max_binding_bytes = 2 * kGiB - 4,
              .max_storage_buffers = 16,
              .max_invocations = 1024,
              .max_workgroup_size_x = 1024,
              .max_workgroup_bytes = 32768,
              .max_workgroups = 65535,
              .binding_alignment = 256,
              .memory_bytes = 64 * kGiB}},
    // A GPU in a browser that grants WebGPU's default limits and all features but matrices.
    {.name = "limits",
     .caps = {.provider = "browser",
              .adapter = "a GPU with WebGPU's default limits",
              .backend = "other",
              .type = AdapterType::kIntegrated,
              .dialect = WgslDialect::kTint,
              .f16 = true,
              .subgroups = true,
              .subgroup_min = 32,
              .subgroup_max = 32,
              .dp4a = true,
              .max_buffer_bytes = 256 * kMiB,
              .max_binding_bytes = 128 * kMiB,
              .max_storage_buffers = 8,
              .max_invocations = 256,
              .max_workgroup_size_x = 256,
              .max_workgroup_bytes = 16384,
              .max_workgroups = 65535,
              .binding_alignment = 256},
     .co_resident_groups = 24},
};

}  // namespace

std::span<const Fixture> fixtures() { return kFixtures; }

}  // namespace doppler::plans
