// The report of one bench run: facts of the run and its rows, as markdown (llama-bench's columns, then ours), CSV or
// JSON. Synthetic weights are labelled wherever a figure is shown. A report has one intent, so that figures to be
// quoted and figures of an investigation never share a table.
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "bench/harness.h"
#include "bench/origin.h"
#include "kernels/ceiling/ceiling.h"

namespace doppler::bench {

// A load of the npm package in a browser or Node.
struct SurfaceLoad {
  struct Phase {
    std::string name;
    double seconds = 0;
    uint64_t bytes = 0;  // of phase compile, kernels
  };
  std::string mode;  // "cold": with empty caches; "warm": the load after it
  double seconds = 0;
  std::vector<Phase> phases;
};

// Everything about the run that is no measurement of a test.
struct RunFacts {
  Origin origin;
  std::string model, architecture;
  bool synthetic = false;
  uint64_t parameters = 0, model_bytes = 0;  // as stored
  uint32_t n_layers = 0;
  gpu::Caps caps;
  std::string lane, kv;
  std::vector<std::string> rules_off;  // rules of lowering that were turned off
  uint32_t sequences = 1;              // that the model was loaded for
  uint32_t ctx_len = 0, chunk = 0, batch = 0, readback_interval = 1, ring = 0, warmups = 0, repetitions = 0;
  uint32_t draft_edits = 0;        // Settings::draft_edits
  std::string surface = "native";  // or "browser", "node": cli/bench_surface.h
  LoadReport load;
  std::vector<SurfaceLoad> loads;  // of other surfaces, in place of `load` and of ceilings
  uint64_t weight_bytes = 0, cache_bytes = 0, scratch_bytes = 0;  // on the device
  kernels::Ceilings ceilings;
  ExpertPaging experts = {};  // since the load
};
Result<kernels::Ceilings> measure_ceilings(Model& model);
// Fills parameters and model_bytes.
void count_weights(RunFacts& facts, const formats::Checkpoint& checkpoint);
RunFacts collect_facts(Model& model, Origin origin, const kernels::Ceilings& ceilings);

struct Report {
  RunFacts facts;
  Intent intent = Intent::kCalibrate;
  std::vector<Row> rows;
};

enum class Format : uint8_t { kMarkdown, kCsv, kJson };
Result<Format> parse_format(std::string_view name);  // "md", "csv", "json"
std::string to_text(const Report& report, Format format);
// The same in pieces, so that a row is seen when it is measured: the head, each row, and the lines below them. JSON is
// one piece, the last.
std::string head_text(const Report& report, Format format);
std::string row_text(const Report& report, size_t number, Format format);
std::string tail_text(const Report& report, Format format);

// Parts of the JSON that other reports of the same run share.
Json device_json(const gpu::Caps& caps);
Json model_json(const RunFacts& facts);
// A line, and a field of each JSON.
std::string ceilings_line(const kernels::Ceilings& ceilings);
Json ceilings_json(const kernels::Ceilings& ceilings);
// "NVIDIA H200 (580.159.04), dawn vulkan": where figures belong.
std::string device_line(const gpu::Caps& caps);
// "llama-3.2-1b (SYNTHETIC weights)".
std::string model_label(const RunFacts& facts);
// "rules off: a, b\n" and the preset's line; either may be missing.
std::string changes_lines(const RunFacts& facts);

}  // namespace doppler::bench
