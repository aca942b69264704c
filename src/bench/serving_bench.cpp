// Measures the waits of a server's clients over the scheduler on synthetic weights: the first token of a prompt whose
// prefix is cached, and the tokens of running streams while a long prompt is evaluated beside them.
//   serving_bench [SHAPE:QUANT] [LIBRARY]   (default llama-3.1-8b:q4_k_m; a WebGPU library)
// Prints one JSON object. For a GPU: on a CPU it takes hours.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "engine/api_impl.h"
#include "engine/scheduler_driver_native.h"
#include "formats/synth/synthetic_model.h"

namespace doppler {
namespace {

using Clock = std::chrono::steady_clock;
using Line = std::shared_ptr<engine::StreamLine>;

constexpr uint32_t kStreams = 8, kPrefix = 4000, kLongPrompt = 32000, kOfEach = 2000, kCtx = 36000;

double milliseconds(Clock::time_point from) {
  return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
}

// Ids that repeat only after a long while, different for each seed.
std::vector<uint32_t> prompt(uint32_t count, uint32_t seed) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < count; ++i) ids.push_back(10 + (i * 2654435761u + seed * 40503u) % 30000);
  return ids;
}

Line must_submit(Model& model, std::vector<uint32_t> tokens, uint32_t max_tokens) {
  model::GenerationSettings settings;
  settings.max_tokens = max_tokens;
  settings.ignore_stop = true;
  auto line = Model::Impl::of(model).driver->submit({.tokens = std::move(tokens), .settings = settings});
  if (line) return *line;
  std::fprintf(stderr, "%s\n", line.error().message().c_str());
  std::exit(1);
}

// Milliseconds to the first token; then the stream is cancelled.
double first_token(Model& model, uint32_t seed) {
  const auto started = Clock::now();
  const Line line = must_submit(model, prompt(kPrefix, seed), 4);
  line->wait();
  const double waited = milliseconds(started);
  while (!line->wait().ended) {
  }
  return waited;
}

struct Waits {
  std::vector<double> arrivals;  // milliseconds between them
  uint64_t tokens = 0;
  double seconds = 0;
  Json json() {
    std::ranges::sort(arrivals);
    Json out = Json::object();
    out["median_wait_ms"] = arrivals[arrivals.size() / 2];
    out["longest_wait_ms"] = arrivals.back();
    out["ms_a_token"] = 1000 * seconds / static_cast<double>(std::max<uint64_t>(1, tokens));
    return out;
  }
};

// The waits of one of the running streams until `done`.
Waits watch(const Line& line, const std::function<bool()>& done) {
  Waits waits;
  const auto started = Clock::now();
  auto last = started;
  while (!done()) {
    const engine::Arrived arrived = line->wait();
    waits.arrivals.push_back(milliseconds(last));
    last = Clock::now();
    waits.tokens += arrived.tokens.size();
    if (arrived.ended) break;
  }
  waits.seconds = std::chrono::duration<double>(last - started).count();
  return waits;
}

int measure(const std::string& shape, const std::string& library) {
  auto made = formats::SyntheticModel::make(shape);
  if (!made) return std::fprintf(stderr, "%s\n", made.error().message().c_str()), 1;
  LoadOptions options;
  options.webgpu = library;
  options.ctx_len = kCtx;
  options.sequences = kStreams + 1;
  options.pool_tokens = kCtx + kStreams * 2 * kOfEach + 4 * kPrefix;
  auto model = load_files(formats::synthetic_file_set(std::move(*made)), options);
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message().c_str()), 1;

  Json out = Json::object();
  out["kind"] = "serving";
  out["model"] = shape;
  out["synthetic"] = true;
  out["adapter"] = model->info().adapter;
  out["provider"] = model->info().provider;
  first_token(*model, 1);  // warm
  out["prefix_tokens"] = kPrefix;
  out["first_ms"] = first_token(*model, 2);
  out["again_ms"] = first_token(*model, 2);

  std::vector<Line> streams;
  for (uint32_t i = 0; i < kStreams; ++i)
    streams.push_back(must_submit(*model, prompt(512, 10 + i), kOfEach));
  streams[0]->wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  streams[0]->wait();
  const auto started = Clock::now();
  out["streams"] = kStreams;
  out["alone"] = watch(streams[0], [&] { return milliseconds(started) > 1500; }).json();
  const Line prompting = must_submit(*model, prompt(kLongPrompt, 99), 1);
  const auto prompted = Clock::now();
  std::atomic<bool> is_there = false;
  std::thread reader([&] {
    while (!prompting->wait().ended) {
    }
    is_there = true;
  });
  Waits beside = watch(streams[0], [&] { return is_there.load(); });
  reader.join();
  out["prompt_tokens"] = kLongPrompt;
  out["prompt_seconds"] = milliseconds(prompted) / 1000;
  out["beside_prompt"] = beside.json();
  std::printf("%s\n", to_text(out, 2).c_str());
  for (const Line& line : streams) Model::Impl::of(*model).driver->cancel(*line);
  return 0;
}

}  // namespace
}  // namespace doppler

int main(int argc, char** argv) {
  return doppler::measure(argc > 1 ? argv[1] : "llama-3.1-8b:q4_k_m", argc > 2 ? argv[2] : "");
}
