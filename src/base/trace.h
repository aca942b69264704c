// Spans of host and GPU time for `--trace FILE`, in the Chrome trace format (load it in Perfetto). Off unless started:
// a span then costs one branch. Measurements meant to be quoted refuse to run with tracing on (bench).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace doppler {

void start_tracing();
bool is_tracing();
// The JSON text of all spans so far.
std::string trace_json();

// From construction to destruction, on the host's track. `name` must outlive the span.
class TraceSpan {
 public:
  explicit TraceSpan(std::string_view name);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  std::string_view name_;
  uint64_t begin_ns_ = 0;  // 0: tracing is off
};

// A span with known times, on the GPU's track; nanoseconds from any common zero.
void trace_gpu_span(std::string_view name, std::string_view op_label, uint64_t begin_ns,
                    uint64_t duration_ns);

}  // namespace doppler
