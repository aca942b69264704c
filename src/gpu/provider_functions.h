// The names of the functions that are looked up in a WebGPU library (provider_native.h).
#pragma once

// Every function of webgpu.h that we call. Both libraries have all these functions.
// clang-format off
#define DOPPLER_WGPU_FUNCTIONS(X)                                                                           \
  X(CreateInstance) X(InstanceRelease) X(InstanceRequestAdapter) X(InstanceProcessEvents)                   \
  X(InstanceWaitAny) X(AdapterGetInfo) X(AdapterInfoFreeMembers) X(AdapterGetLimits)                        \
  X(AdapterGetFeatures) X(SupportedFeaturesFreeMembers) X(AdapterRequestDevice) X(AdapterRelease)           \
  X(DeviceGetQueue) X(DeviceDestroy) X(DeviceRelease) X(DeviceCreateBuffer)              \
  X(BufferDestroy) X(BufferRelease) X(BufferMapAsync) X(BufferGetConstMappedRange) X(BufferGetMappedRange) X(BufferUnmap)     \
  X(DeviceCreateShaderModule) X(ShaderModuleRelease) X(DeviceCreateBindGroupLayout)                         \
  X(BindGroupLayoutRelease) X(DeviceCreatePipelineLayout) X(PipelineLayoutRelease)                          \
  X(DeviceCreateComputePipeline) X(ComputePipelineRelease) X(DeviceCreateBindGroup) X(BindGroupRelease)     \
  X(DeviceCreateCommandEncoder) X(CommandEncoderRelease) X(CommandEncoderBeginComputePass)                  \
  X(CommandEncoderCopyBufferToBuffer) X(CommandEncoderClearBuffer) X(CommandEncoderResolveQuerySet)         \
  X(CommandEncoderFinish) X(CommandBufferRelease) X(ComputePassEncoderSetPipeline)                          \
  X(ComputePassEncoderSetBindGroup) X(ComputePassEncoderDispatchWorkgroups) X(ComputePassEncoderEnd)        \
  X(ComputePassEncoderRelease) X(DeviceCreateQuerySet) X(QuerySetRelease) X(QueueSubmit)                    \
  X(QueueWriteBuffer) X(QueueOnSubmittedWorkDone) X(QueueRelease)
// clang-format on

// Functions that only wgpu-native has; null under Dawn.
#define DOPPLER_WGPU_NATIVE_FUNCTIONS(X) \
  X(DevicePoll) X(InstanceEnumerateAdapters) X(DeviceCreateShaderModuleTrusted)
