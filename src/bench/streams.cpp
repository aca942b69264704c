#include "bench/streams.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "bench/statistics.h"
#include "engine/adapter_registry_native.h"
#include "engine/dispatch/dispatcher_native.h"
#include "engine/scheduler/sequence.h"

namespace doppler::bench {
namespace {

using StreamClock = std::chrono::steady_clock;
using engine::StreamLine;

struct Reading {
  std::vector<Arrival> arrivals;
  std::vector<uint32_t> tokens;
  model::DraftTally drafts;
  std::optional<Error> error;
};

// A stream's request.
struct Ask {
  std::vector<uint32_t> prompt, prediction;
  std::shared_ptr<const model::AdapterMix> mix;
};

using Mix = std::shared_ptr<const model::AdapterMix>;

// The adapters of each stream: those with names in turn. Without names all streams have those that the model was loaded
// with.
Result<std::vector<Mix>> mixes_of(const Model& model, const Model::Impl& impl, size_t streams) {
  const std::vector<AdapterInfo> named = model.adapters();
  std::vector<Mix> out;
  for (size_t stream = 0; stream < streams && !named.empty(); ++stream) {
    const AdapterUse use{.name = named[stream % named.size()].name};
    DP_TRY(Mix mix, impl.adapters->mix_of({&use, 1}));
    out.push_back(std::move(mix));
  }
  return out;
}

Result<std::shared_ptr<StreamLine>> begin(engine::Dispatcher& dispatcher, const Ask& ask, uint32_t generate,
                                          model::Drafter drafter) {
  engine::Request request{.tokens = ask.prompt, .settings = {}};
  if (ask.mix) {
    request.first_adapters = false;
    request.settings.adapters = ask.mix;
  }
  request.settings.drafter = drafter;
  request.settings.prediction = ask.prediction;
  if (drafter != model::Drafter::kNone) request.drafts = engine::DraftPolicy(engine::DraftUse::kWhereFaster);
  request.settings.greedy = true;
  request.settings.ignore_stop = true;
  request.settings.max_tokens = generate;
  return dispatcher.submit(std::move(request));
}

Reading read(StreamLine& line, StreamClock::time_point start) {
  Reading out;
  while (true) {
    const engine::Arrived arrived = line.wait();
    const double seconds = std::chrono::duration<double>(StreamClock::now() - start).count();
    if (!arrived.tokens.empty())
      out.arrivals.push_back({seconds, static_cast<uint32_t>(arrived.tokens.size())});
    out.tokens.insert(out.tokens.end(), arrived.tokens.begin(), arrived.tokens.end());
    if (!arrived.ended) continue;
    out.drafts = arrived.timings.drafts;
    out.error = arrived.error;
    return out;
  }
}

// All prompts at once, a reader's thread each, to the end.
Result<std::vector<Reading>> run(engine::Dispatcher& dispatcher, const std::vector<Ask>& asks,
                                 uint32_t generate, model::Drafter drafter) {
  const auto start = StreamClock::now();
  std::vector<std::shared_ptr<StreamLine>> lines;
  for (const Ask& ask : asks) {
    DP_TRY(std::shared_ptr<StreamLine> line, begin(dispatcher, ask, generate, drafter));
    lines.push_back(std::move(line));
  }
  std::vector<Reading> readings(lines.size());
  std::vector<std::thread> readers;
  for (size_t i = 0; i < lines.size(); ++i) {
    readers.emplace_back([&, i] { readings[i] = read(*lines[i], start); });
  }
  for (std::thread& reader : readers) reader.join();
  for (Reading& reading : readings)
    if (reading.error) return forward(std::move(*reading.error));
  return readings;
}

// The prompts of a test, and with `edits` what each answer will be but for one token of so many.
Result<std::vector<Ask>> asks_of(Model& model, const Test& test, uint32_t edits) {
  Model::Impl& impl = Model::Impl::of(model);
  DP_TRY(const std::vector<Mix> mixes, mixes_of(model, impl, test.streams));
  std::vector<Ask> asks(test.streams);
  for (uint32_t stream = 0; stream < test.streams; ++stream) {
    asks[stream].prompt = make_prompt(test.depth, impl.info.vocab_size, stream);
    if (!mixes.empty()) asks[stream].mix = mixes[stream];
  }
  // Streams that were evaluated one after the other would decode at unequal depths. So all are evaluated first, and
  // then all begin at once, from one more token each.
  if (test.depth != 0) DP_CHECK(run(*impl.dispatcher, asks, 1, model::Drafter::kNone));
  for (uint32_t stream = 0; stream < test.streams; ++stream)
    asks[stream].prompt.push_back(make_prompt(1, impl.info.vocab_size, stream + 1000)[0]);
  if (edits == 0) return asks;
  DP_TRY(const std::vector<Reading> known, run(*impl.dispatcher, asks, test.generate, model::Drafter::kNone));
  for (uint32_t stream = 0; stream < test.streams; ++stream) {
    std::vector<uint32_t>& prediction = asks[stream].prediction = known[stream].tokens;
    for (size_t i = edits - 1; i < prediction.size(); i += edits)
      prediction[i] = (prediction[i] + 1) % impl.info.vocab_size;
  }
  return asks;
}

Result<void> check_room(const Test& test, const SchedulerLoad& load) {
  // One to spare each, without which the scheduler would let the last ones wait.
  const uint64_t needed = uint64_t{test.streams} *
                          (engine::blocks_of(static_cast<uint32_t>(test.positions()), load.block_len) + 1);
  if (needed <= load.blocks) return {};
  return fail(ErrorKind::kInvalidInput,
              "Test %s needs a cache of %llu blocks of %u tokens; this one has %u (--ctx).",
              test.name().c_str(), static_cast<unsigned long long>(needed), load.block_len, load.blocks);
}

}  // namespace

std::optional<StreamFigures> stream_figures(std::span<const std::vector<Arrival>> streams) {
  double from = 0, to = std::numeric_limits<double>::max();
  for (const std::vector<Arrival>& stream : streams) {
    if (stream.empty()) return std::nullopt;
    from = std::max(from, stream.front().seconds);
    to = std::min(to, stream.back().seconds);
  }
  StreamFigures out;
  std::vector<double> token_seconds;
  for (const std::vector<Arrival>& stream : streams) {
    const Arrival* first = nullptr;
    const Arrival* last = nullptr;
    double tokens = 0;
    for (const Arrival& arrival : stream) {
      if (arrival.seconds < from || arrival.seconds > to) continue;
      if (last) {
        const double wait = arrival.seconds - last->seconds;
        token_seconds.push_back(wait / arrival.tokens);
        out.longest_wait = std::max(out.longest_wait, wait);
        tokens += arrival.tokens;
      } else {
        first = &arrival;
      }
      last = &arrival;
    }
    if (first == last || last->seconds <= first->seconds) return std::nullopt;
    out.rate += tokens / (last->seconds - first->seconds);
  }
  out.token_seconds = median(token_seconds);
  return out;
}

Result<StreamFigures> time_streams(Model& model, const Test& test, uint32_t edits) {
  Model::Impl& impl = Model::Impl::of(model);
  if (!impl.driver || !impl.driver->has_thread()) {
    return fail(ErrorKind::kInvalidInput, "Test %s needs a model that was loaded for several sequences.",
                test.name().c_str());
  }
  DP_CHECK(check_room(test, impl.dispatcher->load()));
  const engine::AnswerConfig config = engine::answer_config(*impl.loaded);
  DP_TRY(const std::vector<Ask> asks, asks_of(model, test, edits));
  DP_TRY(const std::vector<Reading> readings,
         run(*impl.dispatcher, asks, test.generate, model::drafter_of(config.drafting, config.drafters)));
  std::vector<std::vector<Arrival>> arrivals;
  model::DraftTally drafts;
  for (const Reading& reading : readings) {
    arrivals.push_back(reading.arrivals);
    drafts.drafted += reading.drafts.drafted;
    drafts.accepted += reading.drafts.accepted;
  }
  if (auto figures = stream_figures(arrivals)) {
    figures->drafts = drafts;
    return *figures;
  }
  return fail(
      ErrorKind::kInvalidInput,
      "Test %s is too short: tokens must come to each stream twice while all streams decode; raise -n.",
      test.name().c_str());
}

}  // namespace doppler::bench
