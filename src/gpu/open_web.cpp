// Device::open in a browser: the host asks for adapter and device and describes what it got; errors that come
// later arrive through doppler_gpu_error().
#include <algorithm>
#include <cstdlib>

#include "base/json.h"
#include "base/log.h"
#include "gpu/device_web.h"

namespace doppler::gpu {
namespace {

WebDevice* g_device = nullptr;  // one an instance of the module

uint64_t number(const Json& object, std::string_view key) {
  const auto value = get_number(object, key);
  return value && *value && **value > 0 ? static_cast<uint64_t>(**value) : 0;
}
uint32_t small_number(const Json& object, std::string_view key) {
  return static_cast<uint32_t>(std::min<uint64_t>(number(object, key), UINT32_MAX));
}
bool flag(const Json& object, std::string_view key) {
  const auto value = get_bool(object, key);
  return value && *value && **value;
}
std::string word(const Json& object, std::string_view key) {
  const auto value = get_string(object, key);
  return value && *value ? **value : std::string();
}

Caps caps_from(const Json& host) {
  Caps caps;
  caps.provider = word(host, "provider");
  caps.adapter = word(host, "adapter");
  caps.vendor = word(host, "vendor");
  caps.architecture = word(host, "architecture");
  caps.driver = word(host, "driver");
  caps.type = flag(host, "cpu") ? AdapterType::kCpu : AdapterType::kUnknown;
  caps.dialect = WgslDialect::kTint;  // the text that Tint takes is the standard's, which every browser takes
  caps.f16 = flag(host, "f16");
  caps.dp4a = flag(host, "dp4a");
  caps.subgroup_min = small_number(host, "subgroup_min");
  caps.subgroup_max = small_number(host, "subgroup_max");
  caps.subgroups = flag(host, "subgroups") && caps.subgroup_max != 0;
  if (!caps.subgroups) caps.subgroup_min = caps.subgroup_max = 0;
  if (flag(host, "subgroups") && !caps.subgroups) {
    log(LogLevel::kWarning, "%s has subgroups but does not tell their size; Doppler does without.",
        caps.adapter.c_str());
  }
  caps.matrix_f16 = flag(host, "matrix_f16") && caps.f16 && caps.subgroups;
  caps.max_buffer_bytes = number(host, "max_buffer_bytes") / 4 * 4;
  caps.max_binding_bytes = number(host, "max_binding_bytes") / 4 * 4;
  caps.max_storage_buffers = small_number(host, "max_storage_buffers");
  caps.max_invocations = small_number(host, "max_invocations");
  caps.max_workgroup_size_x = small_number(host, "max_workgroup_size_x");
  caps.max_workgroup_bytes = small_number(host, "max_workgroup_bytes");
  caps.max_workgroups = small_number(host, "max_workgroups");
  caps.binding_alignment = std::max(256u, small_number(host, "binding_alignment"));
  return caps;
}

}  // namespace

WebDevice::WebDevice(Caps caps) {
  caps_ = std::move(caps);
  g_device = this;
}

WebDevice::~WebDevice() {
  g_device = nullptr;
  host_gpu_close();
}

Task<Result<std::unique_ptr<Device>>> Device::open(DeviceOptions) {
  if (g_device) co_return fail(ErrorKind::kInternal, "This instance of the module has a device already.");
  const HostCall call;
  host_gpu_open(call.ticket());
  const HostAnswer answer = co_await call.answer();
  if (!answer.ok()) co_return fail(ErrorKind::kDevice, "%s", answer.text().c_str());
  DP_CO_TRY(const Json host, parse_json(answer.text(), "the host's description of the device"));
  auto device = std::make_unique<WebDevice>(caps_from(host));
  log_assumed_units(device->caps());
  co_return std::unique_ptr<Device>(std::move(device));
}

// status: kFailed for an error that no call waits for, kOutOfMemory likewise, kNotThere when the device was
// lost.
DP_HOST_EXPORT("doppler_gpu_error")
void export_gpu_error(HostStatus status, char* data, uint32_t bytes) {
  const std::string text(data, bytes);
  std::free(data);
  if (!g_device) return;
  log(LogLevel::kDebug, "GPU error: %s", text.c_str());
  if (status == HostStatus::kNotThere) {
    g_device->lose("The GPU device was lost (" + text + "). Load the model again to go on.");
  } else {
    const bool no_memory = status == HostStatus::kOutOfMemory;
    g_device->put_error(no_memory ? ErrorKind::kOutOfMemory : ErrorKind::kDevice,
                        "The GPU reported an error: " + text);
  }
}

}  // namespace doppler::gpu
