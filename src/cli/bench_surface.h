// `doppler bench --surface browser` and `node`: the npm package (web/) is measured, by web/surfaces/bench.mjs, which
// this program starts and whose rows it reports as its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report.h"
#include "cli/common.h"

namespace doppler::cli {

enum class Surface : uint8_t { kNative, kBrowser, kNode };
const char* surface_name(Surface surface);
Result<Surface> parse_surface(std::string_view name);

struct SurfaceBench {
  Surface surface = Surface::kNode;
  const ModelFlags& model;
  const bench::Settings& settings;
  bench::Format format;
  std::string output;
  std::string chromium, chromium_flags;  // empty: the usual place; no flags
};
// given: names of the flags on the line. Error: a flag means nothing to that surface.
Result<void> check_surface_flags(Surface surface, std::span<const std::string> given);
// Errors: Node or the script is not there; what the script says.
Result<void> bench_surface(const SurfaceBench& bench);

}  // namespace doppler::cli
