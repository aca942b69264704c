#include "base/trace.h"

#include <chrono>
#include <vector>

#include "base/json.h"

namespace doppler {
namespace {

struct Span {
  std::string name, op_label;
  bool on_gpu = false;
  uint64_t begin_ns = 0, duration_ns = 0;
};

bool g_tracing = false;
std::vector<Span>& spans() {
  static std::vector<Span> list;
  return list;
}

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

}  // namespace

void start_tracing() { g_tracing = true; }
bool is_tracing() { return g_tracing; }

TraceSpan::TraceSpan(std::string_view name) : name_(name), begin_ns_(g_tracing ? now_ns() : 0) {}

TraceSpan::~TraceSpan() {
  if (begin_ns_ != 0) spans().push_back({std::string(name_), {}, false, begin_ns_, now_ns() - begin_ns_});
}

void trace_gpu_span(std::string_view name, std::string_view op_label, uint64_t begin_ns,
                    uint64_t duration_ns) {
  if (g_tracing) spans().push_back({std::string(name), std::string(op_label), true, begin_ns, duration_ns});
}

std::string trace_json() {
  Json events = Json::array();
  for (const Span& span : spans()) {
    Json event = {{"name", span.name},
                  {"ph", "X"},
                  {"pid", 1},
                  {"tid", span.on_gpu ? 2 : 1},
                  {"ts", static_cast<double>(span.begin_ns) / 1000},  // microseconds
                  {"dur", static_cast<double>(span.duration_ns) / 1000}};
    if (!span.op_label.empty()) event["args"] = {{"op_label", span.op_label}};
    events.push_back(std::move(event));
  }
  for (const int track : {1, 2}) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", track},
                      {"args", {{"name", track == 1 ? "host" : "GPU"}}}});
  }
  const Json document = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return to_text(document);
}

}  // namespace doppler
