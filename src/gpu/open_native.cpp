// The choice of provider and adapter: Device::open and list_adapters.
#include <algorithm>
#include <optional>

#include "base/log.h"
#include "base/own_folders_native.h"
#include "base/text.h"
#include "gpu/device_list.h"
#include "gpu/device_native.h"

namespace doppler::gpu {
namespace {

std::string or_environment(std::string value, const char* variable) {
  return value.empty() ? environment_variable(variable) : value;
}

// Smaller is better.
int rank(AdapterType type) {
  switch (type) {
    case AdapterType::kDiscrete:
      return 0;
    case AdapterType::kIntegrated:
      return 1;
    case AdapterType::kUnknown:
      return 2;
    case AdapterType::kCpu:
      return 3;
  }
  return 4;
}

struct Choice {
  std::string provider;  // "": not decided
  VulkanDevice device;
};

// Those of list_adapters(), in its order.
std::vector<Choice> numbered_devices(const std::string& provider, const std::vector<VulkanDevice>& devices) {
  std::vector<std::string> providers = {provider};
  if (provider.empty()) providers = usual_providers();
  std::vector<Choice> out;
  for (const std::string& which : providers) {
    for (const VulkanDevice& device : devices) out.push_back({which, device});
  }
  return out;
}

// The device that `wanted` means: best by default, by a part of its name, or by its number in
// list_adapters().
Result<Choice> choose(const std::string& provider, const std::string& wanted) {
  DP_TRY(const std::vector<VulkanDevice> devices, list_vulkan_devices());
  if (wanted.empty()) {
    return Choice{provider,
                  *std::min_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
                    return rank(a.type) < rank(b.type);
                  })};
  }
  const std::vector<Choice> all = numbered_devices(provider, devices);
  if (const auto index = parse_int(wanted)) {
    if (*index >= 0 && static_cast<size_t>(*index) < all.size()) return all[static_cast<size_t>(*index)];
  } else {
    for (const VulkanDevice& device : devices) {
      if (ascii_lower(device.name).find(ascii_lower(wanted)) != std::string::npos)
        return Choice{provider, device};
    }
  }
  std::string names;
  for (size_t i = 0; i < all.size(); ++i)
    names += format_text("\n  %zu: %s (%s)", i, all[i].device.name.c_str(), all[i].provider.c_str());
  return fail(ErrorKind::kInvalidInput, "No adapter matches \"%s\". There are:%s", printable(wanted).c_str(),
              names.c_str());
}

Result<std::unique_ptr<Device>> open_on(const std::string& which, const VulkanDevice& device,
                                        const DeviceOptions& options) {
  DP_TRY(const Provider* const provider, Provider::open(which));
  DP_TRY(NativeAdapter adapter, request_adapter(*provider, device));
  Caps caps = adapter.read_caps(device);
  const bool ring = options.uploads.empty() ? caps.type == AdapterType::kDiscrete : options.uploads == "ring";
  caps.uploads = ring ? UploadWay::kRing : UploadWay::kQueue;
  auto opened = std::make_unique<NativeDevice>(std::move(adapter), std::move(caps), options.cache_dir,
                                               options.bounds_checks);
  DP_CHECK(opened->start());
  return opened;
}

// Fills what the options leave to the environment.
DeviceOptions with_environment(DeviceOptions options) {
  options.provider = or_environment(std::move(options.provider), "DOPPLER_WEBGPU");
  options.adapter = or_environment(std::move(options.adapter), "DOPPLER_DEVICE");
  options.uploads = or_environment(std::move(options.uploads), "DOPPLER_UPLOADS");
  options.bounds_checks |= or_environment("", "DOPPLER_BOUNDS_CHECKS") == "1";
  return options;
}

Result<std::unique_ptr<Device>> open_now(DeviceOptions options) {
  options = with_environment(std::move(options));
  if (!options.uploads.empty() && options.uploads != "ring" && options.uploads != "queue") {
    return fail(ErrorKind::kInvalidInput, "Uploads by \"%s\" were asked for; allowed are ring and queue.",
                printable(options.uploads).c_str());
  }
  DP_TRY(const Choice choice, choose(options.provider, options.adapter));
  if (!choice.provider.empty()) return open_on(choice.provider, choice.device, options);
  if (choice.device.type == AdapterType::kCpu) {
    // wgpu-native starts faster, needs less memory and runs on older Mesa.
    log(LogLevel::kWarning, "No GPU was found; %s (CPU) runs through wgpu-native.",
        choice.device.name.c_str());
    return open_on("wgpu", choice.device, options);
  }
  if (usual_providers().front() == "dawn") {
    auto dawn = open_on("dawn", choice.device, options);
    if (dawn) return dawn;
    log(LogLevel::kWarning,
        "Using wgpu-native on %s, without matrix units, because Dawn does not work here: %s",
        choice.device.name.c_str(), dawn.error().sentence().c_str());
  }
  return open_on("wgpu", choice.device, options);
}

AdapterInfo describe_adapter(const std::string& which, const VulkanDevice& device) {
  AdapterInfo info = {.provider = which, .caps = {}, .problem = {}};
  info.caps.provider = which;
  info.caps.adapter = device.name;
  info.caps.type = device.type;
  info.caps.memory_bytes = device.memory_bytes;
  info.caps.compute_units = device.compute_units;
  const auto provider = Provider::open(which);
  if (!provider) {
    info.problem = provider.error().sentence();
    return info;
  }
  info.provider = (*provider)->name;
  const auto adapter = request_adapter(**provider, device);
  if (!adapter) {
    info.problem = adapter.error().sentence();
    return info;
  }
  info.caps = adapter->read_caps(device);
  return info;
}

}  // namespace

Task<Result<std::unique_ptr<Device>>> Device::open(DeviceOptions options) {
  co_return open_now(std::move(options));
}

std::vector<AdapterInfo> list_adapters(const std::string& provider) {
  const auto devices = list_vulkan_devices();
  if (!devices) return {{.provider = provider, .caps = {}, .problem = devices.error().sentence()}};
  std::vector<AdapterInfo> infos;
  for (const Choice& choice : numbered_devices(provider, *devices))
    infos.push_back(describe_adapter(choice.provider, choice.device));
  return infos;
}

namespace {

// The numbers of the best kind of device that the first provider with one can use.
Result<std::vector<std::string>> all_devices(const std::string& provider) {
  const std::vector<AdapterInfo> infos = list_adapters(provider);
  const AdapterInfo* best = nullptr;
  for (const AdapterInfo& info : infos) {
    if (info.problem.empty() && (!best || rank(info.caps.type) < rank(best->caps.type))) best = &info;
  }
  std::vector<std::string> out;
  for (size_t i = 0; best && i < infos.size(); ++i) {
    const AdapterInfo& info = infos[i];
    const bool is_like_best = info.provider == best->provider && info.caps.type == best->caps.type;
    if (info.problem.empty() && is_like_best) out.push_back(std::to_string(i));
  }
  if (!out.empty()) return out;
  return fail(ErrorKind::kDevice, "No device can be used: %s",
              infos.empty() ? "there is none." : infos[0].problem.c_str());
}

}  // namespace

bool names_several(const std::string& adapter) {
  if (adapter == "all") return true;
  const std::vector<std::string> parts = split(adapter, ',');
  return parts.size() > 1 &&
         std::ranges::all_of(parts, [](const auto& part) { return parse_int(part).has_value(); });
}

Result<std::vector<DeviceOptions>> each_device(DeviceOptions options) {
  options = with_environment(std::move(options));
  std::vector<std::string> numbers = {options.adapter};
  if (options.adapter == "all") {
    DP_TRY(numbers, all_devices(options.provider));
  } else if (names_several(options.adapter)) {
    numbers = split(options.adapter, ',');
  }
  std::vector<DeviceOptions> out(numbers.size(), options);
  for (size_t i = 0; i < numbers.size(); ++i) out[i].adapter = numbers[i];
  return out;
}

}  // namespace doppler::gpu
