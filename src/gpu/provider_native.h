// One WebGPU implementation, opened as a shared library at run time: the table of the functions we call and the few
// extension structs of each. Dawn and wgpu-native share the C ABI of webgpu.h; where they differ, this file and
// `Provider::is_dawn` say so. docs/design/providers.md has the measurements of both. Read next: instance_native.h
// (adapters), device_native.h (what runs on it).
#pragma once

#include <webgpu/wgpu.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/provider_functions.h"

namespace doppler::gpu {

struct Provider {
#define DOPPLER_MEMBER(name) decltype(&::wgpu##name) name = nullptr;
  DOPPLER_WGPU_FUNCTIONS(DOPPLER_MEMBER)
  DOPPLER_WGPU_NATIVE_FUNCTIONS(DOPPLER_MEMBER)
#undef DOPPLER_MEMBER
  // Functions that only Dawn has; null under wgpu-native, and in a Dawn without subgroup matrices.
  void (*SubgroupMatrixConfigsFreeMembers)(struct DawnSubgroupMatrixConfigs) = nullptr;

  bool is_dawn = false;
  std::string name;  // "dawn" or "wgpu"
  std::string path;  // of the library

  // Opens `which`: "dawn", "wgpu" or the path of a library (recognised by what it exports). Names are looked
  // for in ../lib beside the program, beside libdoppler.so, in the folder tools/setup fills, then where the
  // system looks. A library stays open until the process ends. Errors list the places tried.
  static Result<const Provider*> open(const std::string& which);
};

// The providers that Doppler comes with on this system, by name, the best first.
std::vector<std::string> usual_providers();

// ---- Extensions of Dawn (values as its headers of 2025-2026 have them) ----
inline constexpr auto kDawnTogglesSType = static_cast<WGPUSType>(0x0005000A);
inline constexpr auto kDawnInstanceSType = static_cast<WGPUSType>(0x00050006);
inline constexpr auto kDawnCacheSType = static_cast<WGPUSType>(0x00050007);
inline constexpr auto kDawnSubgroupMatrixConfigsSType = static_cast<WGPUSType>(0x0005003B);
inline constexpr auto kDawnImplicitSynchronization = static_cast<WGPUFeatureName>(0x00050004);
inline constexpr auto kDawnSubgroupMatrix = static_cast<WGPUFeatureName>(0x00050034);
inline constexpr auto kWgpuSubgroups = static_cast<WGPUFeatureName>(0x00030021);

struct DawnToggles {
  WGPUChainedStruct chain;
  size_t enabled_count;
  const char* const* enabled;
  size_t disabled_count;
  const char* const* disabled;
};

// Its form differs between releases of Dawn (before 2026: a count of 32 bits, then texts that end with a zero).
struct DawnInstance {
  WGPUChainedStruct chain;
  const WGPUStringView* paths;  // folders, each with a slash at its end, where it looks for libraries first
  size_t path_count;
  void* platform;               // null: Dawn's own
  uint32_t backend_validation;  // 0 full, 1 partial, 2 none
  uint32_t begin_capture;
  void* others[6];  // zero; more than there are
};

struct DawnCache {
  WGPUChainedStruct chain;
  WGPUStringView isolation_key;
  struct {
    WGPUChainedStruct* next;
    size_t (*load)(size_t key_bytes, const uint8_t* key, size_t value_bytes, uint8_t* value, void*, void*);
    void* userdata1;
    void* userdata2;
  } load;
  struct {
    WGPUChainedStruct* next;
    void (*store)(size_t key_bytes, const uint8_t* key, size_t value_bytes, const uint8_t* value, void*,
                  void*);
    void* userdata1;
    void* userdata2;
  } store;
};

struct DawnSubgroupMatrixConfig {
  uint32_t component;  // 1 F32, 2 F16, 3 U32, 4 I32, 5 U8, 6 I8
  uint32_t result;
  uint32_t m, n, k;
};

struct DawnSubgroupMatrixConfigs {
  WGPUChainedStruct chain;
  size_t count;
  DawnSubgroupMatrixConfig* configs;
};

inline WGPUStringView to_view(std::string_view text) { return {text.data(), text.size()}; }
std::string from_view(WGPUStringView text);  // also of a null-terminated or null view

}  // namespace doppler::gpu
