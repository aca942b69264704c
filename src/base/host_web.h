// Calls from WebAssembly to its JavaScript host that take time: a ticket goes out with the call, and the host
// later brings the answer to it through the exported doppler_complete(), which resumes whoever waits. The
// other side is web/wasm_loader.mjs. Users: gpu/device_web.cpp, web/web_file_set.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"

// An imported function: DP_HOST_IMPORT("dp_idle") void host_idle(uint32_t ticket);
#define DP_HOST_IMPORT(name) extern "C" __attribute__((import_module("doppler"), import_name(name)))
#define DP_HOST_EXPORT(name) extern "C" __attribute__((export_name(name)))

namespace doppler {

// The host's answer to a call; the numbers are also in web/wasm_loader.mjs.
enum class HostStatus : uint32_t { kOk = 0, kFailed = 1, kOutOfMemory = 2, kNotThere = 3 };

struct HostAnswer {
  HostStatus status = HostStatus::kFailed;
  std::vector<uint8_t> bytes;  // the result, or the host's sentence

  bool ok() const { return status == HostStatus::kOk; }
  std::string text() const { return std::string(bytes.begin(), bytes.end()); }
};

// One call: make it, pass ticket() to the import, then co_await answer().
class HostCall {
 public:
  HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
  ~HostCall();  // an answer that comes later is dropped

  uint32_t ticket() const { return ticket_; }
  const Completion<HostAnswer>& answer() const { return completion_; }

 private:
  uint32_t ticket_;
  Completion<HostAnswer> completion_;
};

}  // namespace doppler
