// Repeats tests (workload.h) on a loaded model and keeps every sample. The tests are llama-bench's: ppN evaluates an
// N-token prompt, tgN generates N tokens, ppN+tgM does one after the other; @ dD means after D tokens in the cache.
// Decode tok/s counts the N-1 intervals between N tokens. Prefill tok/s is prompt tokens over the time to their last
// logits. Tests of many streams (tgN x8): streams.h.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/workload.h"
#include "engine/api_impl.h"

namespace doppler::bench {

// A calibration may be quoted. An investigation looks for reasons and may trace. A table holds runs of one intent.
enum class Intent : uint8_t { kCalibrate, kInvestigate };
const char* intent_name(Intent intent);

// The way in which decode steps are handed to the device.
struct Cadence {
  uint32_t batch = 0;              // decode steps of one submit; 0: the model's default (engine/tuning.h)
  uint32_t readback_interval = 1;  // submits whose tokens come back together
};

struct Row {
  Test test;
  std::vector<double> rates;  // tok/s, one a repetition
  double ttft_seconds = 0;    // median; 0 if no prompt is evaluated
  // For one sequence; 0 for streams. The host's time is 0 if it was not measured, outside this program.
  double submits_per_token = 0, readback_bytes_per_token = 0, dispatches_per_token = 0, host_us_per_token = 0;
  uint64_t objects_created = 0;  // during the measurement; must be 0
  double bandwidth_fraction =
      0;  // decode: weight bytes a token / measured read bandwidth, up to 1; 0: not known
  // GPU time of one decode step inside a submit of many, by two timestamps; 0: not measured, which only an
  // investigation does. Wall clock a token over this time is 1 if the host keeps the device busy.
  double gpu_seconds = 0;
  double wall_over_gpu() const;
  // For streams: the time for a token of one stream, and the longest wait of a stream for its next tokens. Medians.
  double token_seconds = 0, longest_wait_seconds = 0;
  ExpertPaging experts = {};      // of all repetitions, the warm-ups too
  model::DraftTally drafts = {};  // likewise
  // The median seconds of a step of so many rows, for tests that draft and only generate.
  struct StepTime {
    uint32_t rows = 1;
    double seconds = 0;
  };
  std::vector<StepTime> step_times = {};
};

struct Settings {
  std::vector<Test> tests;
  uint32_t repetitions = 5;
  uint32_t warmups = 1;
  Cadence cadence;
  // If above 0, an untimed run writes the answer first. The timed runs take it for their prediction
  // (GenerationSettings), with one token of so many changed. This is a text that is edited in a few places.
  uint32_t draft_edits = 0;
  Intent intent = Intent::kCalibrate;
  // Called before each repetition: test number, repetition (0: warm-up).
  std::function<void(size_t test, uint32_t repetition)> progress;
  std::function<Result<void>(const Row& row)> on_row;  // called when it is measured
};

// The share of the read bandwidth for a row. Above 1 it becomes 0, with a warning, since then the ceiling was measured
// too low.
double checked_fraction(double fraction, const std::string& test);

// Errors: a test that does not fit the context; tracing on with Intent::kCalibrate.
Result<std::vector<Row>> run_tests(Model& model, const Settings& settings, double read_bandwidth);

}  // namespace doppler::bench
