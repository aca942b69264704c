// Reads an adapter's abilities into a Caps record; see instance_native.h.
#include <algorithm>

#include "gpu/instance_native.h"

namespace doppler::gpu {
namespace {

AdapterType to_type(WGPUAdapterType type) {
  switch (type) {
    case WGPUAdapterType_DiscreteGPU:
      return AdapterType::kDiscrete;
    case WGPUAdapterType_IntegratedGPU:
      return AdapterType::kIntegrated;
    case WGPUAdapterType_CPU:
      return AdapterType::kCpu;
    default:
      return AdapterType::kUnknown;
  }
}

const char* backend_name(WGPUBackendType type) {
  switch (type) {
    case WGPUBackendType_Vulkan:
      return "vulkan";
    case WGPUBackendType_Metal:
      return "metal";
    case WGPUBackendType_D3D12:
      return "d3d12";
    default:
      return "other";
  }
}

// Dawn's component types.
constexpr uint32_t kComponentF32 = 1;
constexpr uint32_t kComponentF16 = 2;
constexpr uint32_t kMatrixSize = 16;  // our matrix kernels' tile

bool has_f16_matrices(const Provider& provider, WGPUAdapter adapter) {
  if (!provider.SubgroupMatrixConfigsFreeMembers) return false;
  DawnSubgroupMatrixConfigs configs = {
      .chain = {nullptr, kDawnSubgroupMatrixConfigsSType}, .count = 0, .configs = nullptr};
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  info.nextInChain = &configs.chain;
  if (provider.AdapterGetInfo(adapter, &info) != WGPUStatus_Success) return false;
  const bool found = std::any_of(configs.configs, configs.configs + configs.count, [](const auto& config) {
    return config.component == kComponentF16 && config.result == kComponentF32 && config.m == kMatrixSize &&
           config.n == kMatrixSize && config.k == kMatrixSize;
  });
  provider.SubgroupMatrixConfigsFreeMembers(configs);
  info.nextInChain = nullptr;
  provider.AdapterInfoFreeMembers(info);
  return found;
}

}  // namespace

Caps NativeAdapter::read_caps(const VulkanDevice& device) const {
  Caps caps;
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  provider_->AdapterGetInfo(adapter_, &info);
  caps.provider = provider_->name;
  caps.adapter = from_view(info.device);
  caps.vendor = from_view(info.vendor);
  caps.architecture = from_view(info.architecture);
  caps.driver = from_view(info.description);
  caps.backend = backend_name(info.backendType);
  caps.type = to_type(info.adapterType);
  caps.dialect = provider_->is_dawn ? WgslDialect::kTint : WgslDialect::kNaga;
  caps.memory_bytes = device.memory_bytes;
  caps.compute_units = device.compute_units;
  caps.f16 = has_feature(WGPUFeatureName_ShaderF16);
  caps.subgroups = has_feature(provider_->is_dawn ? WGPUFeatureName_Subgroups : kWgpuSubgroups);
  caps.timestamps = has_feature(WGPUFeatureName_TimestampQuery);
  caps.matrix_f16 = caps.f16 && caps.subgroups && provider_->is_dawn && has_feature(kDawnSubgroupMatrix) &&
                    has_f16_matrices(*provider_, adapter_);
  if (caps.subgroups) {
    caps.subgroup_min = info.subgroupMinSize;
    caps.subgroup_max = info.subgroupMaxSize;
  }
  provider_->AdapterInfoFreeMembers(info);

  const WGPULimits limit = limits();
  caps.max_buffer_bytes = limit.maxBufferSize / 4 * 4;  // whole words: some drivers say 2^31 - 1
  caps.max_binding_bytes = limit.maxStorageBufferBindingSize / 4 * 4;
  caps.max_storage_buffers = limit.maxStorageBuffersPerShaderStage;
  caps.max_invocations = limit.maxComputeInvocationsPerWorkgroup;
  caps.max_workgroup_size_x = limit.maxComputeWorkgroupSizeX;
  caps.max_workgroup_bytes = limit.maxComputeWorkgroupStorageSize;
  caps.max_workgroups = limit.maxComputeWorkgroupsPerDimension;
  caps.binding_alignment =
      std::max({256u, limit.minStorageBufferOffsetAlignment, limit.minUniformBufferOffsetAlignment});
  return caps;
}

}  // namespace doppler::gpu
