// The calls under way, and the two functions with which the host answers them.
#include "base/host_web.h"

#include <cstdlib>
#include <unordered_map>

namespace doppler {
namespace {

std::unordered_map<uint32_t, Completion<HostAnswer>>& calls() {
  static std::unordered_map<uint32_t, Completion<HostAnswer>> table;
  return table;
}
uint32_t g_last_ticket = 0;

}  // namespace

HostCall::HostCall() : ticket_(++g_last_ticket) { calls().emplace(ticket_, completion_); }
HostCall::~HostCall() { calls().erase(ticket_); }

// Memory that the host fills and passes to one of the exported functions, which frees it. Null: there is none
// left.
DP_HOST_EXPORT("doppler_alloc") void* export_alloc(uint32_t bytes) {
  return std::malloc(bytes == 0 ? 1 : bytes);
}

// Answers the call `ticket`; `data` comes from doppler_alloc(). Called from the event loop, never from an
// import.
DP_HOST_EXPORT("doppler_complete")
void export_complete(uint32_t ticket, HostStatus status, uint8_t* data, uint32_t bytes) {
  HostAnswer answer{.status = status, .bytes = std::vector<uint8_t>(data, data + bytes)};
  std::free(data);
  const auto it = calls().find(ticket);
  if (it == calls().end()) return;
  const Completion<HostAnswer> completion = it->second;
  calls().erase(it);
  completion.complete(std::move(answer));
}

}  // namespace doppler
