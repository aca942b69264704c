#include "gpu/guards_native.h"

#include <atomic>

#include "base/log.h"
#include "base/text.h"
#include "gpu/guards_parts.h"

namespace doppler::gpu {
namespace {

thread_local int guarded_calls = 0;
std::atomic<bool> is_own_process = false;

}  // namespace

void own_process() { is_own_process = true; }
bool owns_process() { return is_own_process; }

AbortGuard::AbortGuard() { ++guarded_calls; }
AbortGuard::~AbortGuard() { --guarded_calls; }
bool is_guarded() { return guarded_calls > 0; }

void log_prints(std::string_view text) {
  for (const std::string& line : split(text, '\n')) {
    if (!trim(line).empty()) log(LogLevel::kDebug, "the provider printed: %s", printable(line, 300).c_str());
  }
}

}  // namespace doppler::gpu
