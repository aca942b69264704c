#include "kernels/persistent/probe.h"

#include <algorithm>
#include <cstring>

#include "gpu/wgsl_composer.h"
#include "kernels/common/dispatch.h"
#include "kernels/persistent/layers.h"
#include "kernels/persistent/persistent_probe.wgsl.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMostGroups = 4096;  // more than are co-resident on any device
constexpr uint32_t kMostGroupsOfCpu = 64;
constexpr uint32_t kProbeSpinLimit = 1u << 12;  // a few milliseconds on a GPU
constexpr uint32_t kProbeSpinLimitOfCpu = 1u << 22;
constexpr uint64_t kProbeBytes = kExchangeCounters * 4;

}  // namespace

Task<Result<uint32_t>> count_co_resident(gpu::Device& device) {
  const gpu::Caps& caps = device.caps();
  const bool is_cpu = caps.type == gpu::AdapterType::kCpu;
  const uint32_t threads = persistent_threads(caps);
  gpu::BufferDesc desc{.name = "probe", .bytes = kProbeBytes, .use = gpu::BufferUse::kStorage};
  DP_CO_TRY(gpu::Buffer exchange, co_await device.create_buffer(std::move(desc)));
  gpu::PlanBuilder builder(caps);
  const Policy policy;
  std::vector<Choice> choices;
  Context ctx{.plan = builder, .policy = policy, .choices = choices, .state = {}, .op_label = "probe"};
  const uint32_t words = std::max(caps.max_workgroup_bytes / 4, threads);
  builder.begin("probe", 1);
  Launch launch{.variant = "decode_layers.probe",
                .entry = "persistent/persistent_probe",
                .layout = wgsl::persistent_probe::kLayout};
  launch.consts = {u32_const("WORKGROUP", threads), u32_const("SHARED", words),
                   u32_const("SPIN_LIMIT", is_cpu ? kProbeSpinLimitOfCpu : kProbeSpinLimit)};
  launch.bindings = {builder.external(exchange)};
  launch.grid.x = is_cpu ? kMostGroupsOfCpu : kMostGroups;
  DP_CO_CHECK(dispatch(ctx, launch));
  builder.end();
  DP_CO_TRY(const gpu::BuiltPlans built, co_await builder.build(device, {}));
  const gpu::Work work{.plan = &built.plans.front(), .rows = 1, .times = 1};
  DP_CO_CHECK(device.submit({&work, 1}));
  DP_CO_TRY(const std::vector<uint8_t> bytes,
            co_await device.read_buffer({exchange.id(), kExchangeCoResident * 4, 4}));
  uint32_t co_resident = 0;
  std::memcpy(&co_resident, bytes.data(), 4);
  co_return std::max(1u, co_resident);
}

std::vector<gpu::KnownWord> words_of_co_resident_groups(uint32_t groups) {
  return {{.buffer = "probe", .offset = kExchangeCoResident * 4, .value = groups},
          {.buffer = "exchange", .offset = kExchangeCoResident * 4, .value = groups}};
}

}  // namespace doppler::kernels
