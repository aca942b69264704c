#include "cli/bench_surface.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/child_process.h"
#include "base/json.h"
#include "cli/beside_program.h"
#include "cli/measure.h"
#include "cli/running_report.h"

namespace doppler::cli {
namespace {

constexpr const char* kScript = "web/surfaces/bench.mjs";
constexpr const char* kNode = "node";

// Flags that the package's load() and requests take too. --chromium and its flags are the browser's.
constexpr std::string_view kFlags[] = {"surface",     "model", "prompt", "generate", "pg",   "depth",
                                       "repetitions", "batch", "format", "output",   "lane", "kv",
                                       "ctx",         "chunk", "kernel", "log-level"};
constexpr std::string_view kBrowserFlags[] = {"chromium", "chromium-flags"};

double number(const Json& object, const char* key) {
  const auto value = get_number(object, key);
  return value ? value->value_or(0) : 0;
}
std::string text(const Json& object, const char* key) {
  const auto value = get_string(object, key);
  return value ? value->value_or("") : "";
}
uint32_t count(const Json& object, const char* key) { return static_cast<uint32_t>(number(object, key)); }
uint64_t bytes(const Json& object, const char* key) { return static_cast<uint64_t>(number(object, key)); }
Json list(const Json& object, const char* key) {
  const Json* found = find(object, key);
  return found && found->is_array() ? *found : Json::array();
}

bench::SurfaceLoad read_load(const Json& load) {
  bench::SurfaceLoad out{.mode = text(load, "mode"), .seconds = number(load, "seconds"), .phases = {}};
  for (const Json& phase : list(load, "phases"))
    out.phases.push_back({text(phase, "phase"), number(phase, "seconds"), bytes(phase, "bytes")});
  return out;
}

bench::Row read_row(const Json& row) {
  bench::Row out{.test = {count(row, "prompt"), count(row, "generate"), count(row, "depth")}};
  const Json* rates = find(row, "tokens_per_second");
  for (const Json& sample : list(rates ? *rates : row, "samples")) {
    if (sample.is_number()) out.rates.push_back(sample.get<double>());
  }
  out.ttft_seconds = number(row, "ttft_seconds");
  out.submits_per_token = number(row, "submits_per_token");
  out.dispatches_per_token = number(row, "dispatches_per_token");
  out.readback_bytes_per_token = number(row, "readback_bytes_per_token");
  out.objects_created = bytes(row, "objects_created");
  return out;
}

void add_model(bench::RunFacts& facts, const Json& model) {
  facts.model = text(model, "name");
  facts.architecture = text(model, "architecture");
  facts.caps.adapter = text(model, "adapter");
  facts.caps.vendor = text(model, "vendor");
  facts.caps.driver = text(model, "driver");
  facts.caps.provider = text(model, "provider");
  facts.caps.backend = "webgpu";
  if (get_bool(model, "cpu").value_or(std::nullopt).value_or(false)) facts.caps.type = gpu::AdapterType::kCpu;
  facts.lane = text(model, "lane");
  facts.ctx_len = count(model, "ctxLen");
  facts.weight_bytes = bytes(model, "weightBytes");
  facts.cache_bytes = bytes(model, "cacheBytes");
  facts.scratch_bytes = bytes(model, "scratchBytes");
}

Json tests_json(const std::vector<bench::Test>& tests) {
  Json out = Json::array();
  for (const bench::Test& test : tests)
    out.push_back({{"prompt", test.prompt}, {"generate", test.generate}, {"depth", test.depth}});
  return out;
}

}  // namespace

const char* surface_name(Surface surface) {
  switch (surface) {
    case Surface::kBrowser:
      return "browser";
    case Surface::kNode:
      return "node";
    case Surface::kNative:
      break;
  }
  return "native";
}

Result<Surface> parse_surface(std::string_view name) {
  for (const Surface surface : {Surface::kNative, Surface::kBrowser, Surface::kNode}) {
    if (name == surface_name(surface)) return surface;
  }
  return fail(ErrorKind::kInvalidInput, "Surface \"%s\" is not known; allowed are native, browser and node.",
              printable(name).c_str());
}

Result<void> check_surface_flags(Surface surface, std::span<const std::string> given) {
  for (const std::string& flag : given) {
    const bool is_browsers = std::ranges::count(kBrowserFlags, flag) > 0;
    const bool is_allowed = surface == Surface::kNative ? !is_browsers
                            : is_browsers               ? surface == Surface::kBrowser
                                                        : std::ranges::count(kFlags, flag) > 0;
    if (is_allowed) continue;
    if (is_browsers)
      return fail(ErrorKind::kInvalidInput, "Flag --%s is only for --surface browser.", flag.c_str());
    std::string names;
    for (const std::string_view name : kFlags) names += (names.empty() ? "--" : ", --") + std::string(name);
    return fail(ErrorKind::kInvalidInput,
                "Flag --%s means nothing to the npm package; with --surface %s there are %s.", flag.c_str(),
                surface_name(surface), names.c_str());
  }
  return {};
}

Result<void> bench_surface(const SurfaceBench& bench) {
  const bench::Settings& settings = bench.settings;
  const LoadOptions& load = bench.model.load;
  DP_CHECK(check_report_file(bench.output));
  const auto script = beside_program({kScript});
  if (!script) {
    return fail(ErrorKind::kIo,
                "There is no %s beside the program: browsers and Node are measured from a checkout.",
                kScript);
  }
  DP_TRY(const std::string path, named_model_path(bench.model.model));
  DP_TRY(const auto checkpoint, open_named_checkpoint(path, ""));
  DP_TRY(const formats::ModelConfig config, formats::read_config(*checkpoint));
  // As load_for() has it: one position more, since the depth is a text that ends with a token of the model's.
  const uint64_t usual = std::min(config.ctx_len, model::kDefaultCtxLen);
  const uint64_t ctx_len =
      load.ctx_len != 0 ? load.ctx_len : std::max(usual, bench::positions_needed(settings.tests) + 1);

  bench::RunFacts facts{.origin = origin_of(bench.model)};
  facts.surface = surface_name(bench.surface);
  facts.kv = load.kv;
  facts.n_layers = config.n_layers;
  facts.synthetic = config.synthetic;
  facts.chunk = load.chunk != 0 ? load.chunk : model::kDefaultChunk;
  facts.batch = settings.cadence.batch != 0 ? settings.cadence.batch : model::kDefaultBatch;
  facts.warmups = settings.warmups;
  facts.repetitions = settings.repetitions;
  bench::count_weights(facts, *checkpoint);

  Json request = {
      {"surface", facts.surface},
      {"model", path},
      {"load", {{"ctx", ctx_len}, {"lane", load.lane}, {"kv", load.kv}, {"kernels", load.kernels}}},
      {"workload", {{"tests", tests_json(settings.tests)}, {"repetitions", settings.repetitions}}},
      {"chromium", bench.chromium},
      {"flags", bench.chromium_flags}};
  if (load.chunk != 0) request["load"]["chunk"] = load.chunk;
  if (settings.cadence.batch != 0) request["workload"]["batch"] = settings.cadence.batch;
  auto child = ChildProcess::start({kNode, *script, to_text(request)});
  if (!child) {
    return fail(ErrorKind::kIo, "%s cannot be started: %s. Measuring the npm package needs Node 20 or newer.",
                kNode, std::strerror(errno));
  }

  std::optional<RunningReport> report;
  while (const auto line = child->line()) {
    DP_TRY(const Json told, parse_json(*line, "What " + std::string(kScript) + " tells"));
    if (const Json* loaded = find(told, "load")) {
      facts.loads.push_back(read_load(*loaded));
    } else if (const Json* model = find(told, "model")) {
      add_model(facts, *model);
      report.emplace(bench::Report{.facts = facts, .intent = settings.intent, .rows = {}}, bench.format,
                     bench.output);
      report->begin();
    } else if (const Json* row = find(told, "row"); row && report) {
      DP_CHECK(report->add(read_row(*row)));
    } else {
      return fail(ErrorKind::kUnsupported, "%s", text(told, "error").c_str());
    }
  }
  if (!report) return fail(ErrorKind::kUnsupported, "%s ended without a message.", kScript);
  report->end();
  return {};
}

}  // namespace doppler::cli
