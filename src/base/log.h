// One line per event on stderr (or wherever the host sends it), by level. Nothing below `warning` prints unless
// asked with --log-level. A library user replaces the sink.
#pragma once

#include <functional>
#include <string_view>

namespace doppler {

enum class LogLevel : int { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

void set_log_level(LogLevel level);
LogLevel log_level();
using LogSink = std::function<void(LogLevel, std::string_view line)>;
void set_log_sink(LogSink sink);  // an empty one restores stderr

[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...);

}  // namespace doppler
