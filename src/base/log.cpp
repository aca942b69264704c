// The one place where messages leave the program: a line each on standard error, or the sink that a host set.
// The contract is log.h.
#include "base/log.h"

#include <cstdarg>
#include <cstdio>
#include <string>

#include "base/text.h"

namespace doppler {
namespace {

LogLevel g_level = LogLevel::kWarning;
LogSink& sink() {
  static LogSink instance;
  return instance;
}

}  // namespace

void set_log_level(LogLevel level) { g_level = level; }
LogLevel log_level() { return g_level; }
void set_log_sink(LogSink new_sink) { sink() = std::move(new_sink); }

void log(LogLevel level, const char* format, ...) {
  if (level > g_level) return;
  va_list args;
  va_start(args, format);
  const std::string line = format_text_v(format, args);
  va_end(args);
  if (sink()) {
    sink()(level, line);
  } else {
    std::fprintf(stderr, "doppler: %s\n", line.c_str());
  }
}

}  // namespace doppler
