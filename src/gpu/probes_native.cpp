// Shaders find out those abilities of a device that it does not tell; see device_native.h.
#include <algorithm>

#include "gpu/device_native.h"

namespace doppler::gpu {
namespace {

constexpr char kSubgroupProbe[] = R"(
@group(0) @binding(0) var<storage, read_write> sizes: array<atomic<u32>, 2>;
@compute @workgroup_size(64) fn main(@builtin(subgroup_size) size: u32) {
  atomicMax(&sizes[0], size);
  atomicMax(&sizes[1], 1024u - size);
}
)";
constexpr uint32_t kProbeBias = 1024;  // the shader keeps a minimum as the maximum of this minus the value
constexpr uint32_t kProbeWorkgroups = 64;  // enough to meet every size a driver mixes

constexpr char kDp4aProbe[] = R"(
@group(0) @binding(0) var<storage, read_write> x: array<u32, 2>;
@compute @workgroup_size(1) fn main() { x[0] = u32(dot4I8Packed(x[0], x[1])); }
)";

}  // namespace

// True if the provider's compiler takes the shader.
bool NativeDevice::compiles(std::string_view wgsl) {
  const ErrorTrap trap;
  WGPUShaderSourceWGSL source = WGPU_SHADER_SOURCE_WGSL_INIT;
  source.code = to_view(wgsl);
  WGPUShaderModuleDescriptor descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  descriptor.nextInChain = &source.chain;
  WGPUShaderModule module = api().DeviceCreateShaderModule(device_, &descriptor);
  const bool is_taken = module && !trap.caught();
  if (module) api().ShaderModuleRelease(module);
  return is_taken;
}

bool NativeDevice::has_dp4a() { return compiles(kDp4aProbe); }

// A version of Dawn may number its features otherwise than this program; their names in WGSL stay.
Result<void> NativeDevice::check_features() {
  if (!api().is_dawn) return {};
  const struct {
    bool is_granted;
    const char* name;
  } features[] = {{caps_.f16, "f16"},
                  {caps_.subgroups, "subgroups"},
                  {caps_.matrix_f16, "chromium_experimental_subgroup_matrix"}};
  for (const auto& feature : features) {
    if (!feature.is_granted) continue;
    if (compiles(format_text("enable %s;\n@compute @workgroup_size(1) fn main() {}\n", feature.name)))
      continue;
    return fail(
        ErrorKind::kUnsupported,
        "%s is a Dawn that numbers its features otherwise than this program: it granted \"%s\", and its "
        "compiler refuses it.",
        api().path.c_str(), feature.name);
  }
  return {};
}

Result<void> NativeDevice::measure_subgroups() {
  BufferDesc desc = {.name = "subgroup probe", .bytes = 8};
  DP_TRY(Buffer sizes, make_buffer(std::move(desc)));
  std::vector<PipelineDesc> descs(1);
  descs[0] = {.label = "probe.subgroup_size", .wgsl = kSubgroupProbe, .layout = {BindKind::kReadWrite}};
  auto compile = create_pipelines(std::move(descs), nullptr);
  DP_TRY(const auto pipelines, run_to_completion(*this, std::move(compile)));
  const BufferSlice whole = {.buffer = sizes.id(), .offset = 0, .bytes = 8};
  DP_TRY(const BindGroupId group, create_bind_group(pipelines[0], std::span(&whole, 1)));
  Plan plan;
  plan.name = "probe";
  plan.words = {kDispatch, pipelines[0], group, kProbeWorkgroups, 1, 1, 0, 0};
  const Work work = {.plan = &plan};
  DP_CHECK(submit(std::span(&work, 1), nullptr));
  auto reading = read_buffer(whole);
  DP_TRY(const auto bytes, run_to_completion(*this, std::move(reading)));
  uint32_t values[2] = {};
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(values));
  caps_.subgroup_max = values[0];
  caps_.subgroup_min = kProbeBias - values[1];
  return {};
}

}  // namespace doppler::gpu
