#include "engine/load_report.h"

#include "base/json.h"
#include "base/text.h"

namespace doppler::engine {
namespace {

uint64_t all_bytes(const LoadReport& load) {
  return load.repacked_bytes + load.copied_bytes + load.rearranged_bytes;
}

double bytes_per_second(const LoadReport& load) {
  return load.weights_seconds > 0 ? static_cast<double>(all_bytes(load)) / load.weights_seconds : 0;
}

}  // namespace

std::string load_line(const LoadReport& load) {
  std::string out = format_text("load %.2f s: weights %.2f s (%s, %.2f GB/s, %s, host copies %.2f s",
                                load.seconds, load.weights_seconds, format_bytes(all_bytes(load)).c_str(),
                                bytes_per_second(load) / 1e9, load.uploads.c_str(), load.copy_seconds);
  if (load.rearranged_bytes != 0) {
    out += format_text(", %s laid out by the host", format_bytes(load.rearranged_bytes).c_str());
  }
  out += format_text("), kernels %.2f s (%llu", load.pipelines_seconds,
                     static_cast<unsigned long long>(load.pipelines));
  if (load.blobs_found != 0 && load.blobs_stored == 0) out += ", all from the cache";
  return out + ")";
}

Json load_json(const LoadReport& load) {
  return {{"seconds", load.seconds},
          {"weights_seconds", load.weights_seconds},
          {"copy_seconds", load.copy_seconds},
          {"pipelines_seconds", load.pipelines_seconds},
          {"bytes_per_second", bytes_per_second(load)},
          {"uploads", load.uploads},
          {"bytes",
           {{"repacked_by_gpu", load.repacked_bytes},
            {"copied", load.copied_bytes},
            {"rearranged_by_host", load.rearranged_bytes}}},
          {"pipelines", load.pipelines},
          {"blobs_found", load.blobs_found},
          {"blobs_stored", load.blobs_stored}};
}

}  // namespace doppler::engine
