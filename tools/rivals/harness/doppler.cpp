// Doppler as an engine of protocol.h, through its C interface, so that prompts are given as tokens and any
// libdoppler.so can be measured. One stream: a session of a model with one sequence. Several: its scheduler.
#include <doppler/doppler_c.h>

#include <memory>
#include <thread>

#include "protocol.h"

namespace {

using rivals::Clock, rivals::Freeing, rivals::Generated, rivals::Stream, rivals::Tokens, rivals::Values;

using Model = std::unique_ptr<doppler_model, Freeing<doppler_model_free>>;
using Session = std::unique_ptr<doppler_session, Freeing<doppler_session_free>>;
using Scheduler = std::unique_ptr<doppler_scheduler, Freeing<doppler_scheduler_free>>;
using OneStream = std::unique_ptr<doppler_stream, Freeing<doppler_stream_free>>;
using Generation = std::unique_ptr<doppler_generation, Freeing<doppler_generation_free>>;

void check(doppler_error* error) {
  if (!error) return;
  const std::string message = doppler_error_message(error);
  doppler_error_free(error);
  throw std::runtime_error(message);
}

Tokens tokens_of(const doppler_generation* generation) {
  size_t count = 0;
  const int32_t* first = doppler_generation_tokens(generation, &count);
  return {first, first + count};
}

doppler_timings timings_of(const doppler_generation* generation) {
  doppler_timings timings = {};
  timings.size = sizeof timings;
  check(doppler_generation_get_timings(generation, &timings));
  return timings;
}

class Doppler : public rivals::Engine {
 public:
  rivals::Loaded load(const Values& values) override {
    doppler_load_options options;
    doppler_load_options_init(&options, sizeof options);
    const auto text = [&](const char* key) -> const char* {
      const auto found = values.find(key);
      return found == values.end() ? nullptr : found->second.c_str();
    };
    options.webgpu = text("webgpu");
    options.device = text("device");
    options.lane = text("lane");
    options.kv = text("kv");
    options.cache_dir = text("cache");
    options.ctx_len = rivals::number_or(values, "context", 0);
    options.chunk = rivals::number_or(values, "chunk", 0);
    sequences_ = rivals::number_or(values, "streams", 1);
    options.sequences = sequences_;
    batch_ = rivals::number_or(values, "batch", 0);
    model_.reset();
    doppler_model* model = nullptr;
    check(doppler_model_load(rivals::value_or(values, "model", "").c_str(), &options, &model));
    model_.reset(model);
    doppler_model_info info = {};
    info.size = sizeof info;
    check(doppler_model_get_info(model, &info));
    return {.version = doppler_version(),
            .device = info.adapter,
            .vocabulary = info.vocab_size,
            .settings = {{"provider", info.provider},
                         {"lane", rivals::value_or(values, "lane", "fast")},
                         {"cache type", rivals::value_or(values, "kv", "f16")},
                         {"decode steps of a submit", batch_ ? std::to_string(batch_) : "default"}}};
  }

  Generated generate(const std::vector<Tokens>& prompts, uint32_t count) override {
    return sequences_ == 1 ? one(prompts.at(0), count) : many(prompts, count);
  }

 private:
  doppler_generate_options greedy(uint32_t count) const {
    doppler_generate_options options;
    doppler_generate_options_init(&options, sizeof options);
    options.temperature = 0;
    options.ignore_eos = true;
    options.max_tokens = count;
    options.batch = batch_;
    return options;
  }

  Generated one(const Tokens& prompt, uint32_t count) {
    doppler_session* session = nullptr;
    check(doppler_model_new_session(model_.get(), &session));
    const Session session_owner(session);
    const doppler_generate_options options = greedy(count);
    doppler_generation* generation = nullptr;
    const auto start = Clock::now();
    check(doppler_session_generate_tokens(session, prompt.data(), prompt.size(), &options, nullptr, nullptr,
                                          &generation));
    const double seconds = rivals::seconds_since(start);
    const Generation owner(generation);
    const doppler_timings timings = timings_of(generation);
    if (timings.cached_tokens > 1)
      throw std::runtime_error(std::to_string(timings.cached_tokens) + " tokens of the prompt were cached.");
    return {.seconds = seconds,
            .prefill = timings.ttft_seconds,
            .streams = {{.ttft = timings.ttft_seconds,
                         .decode = timings.decode_seconds,
                         .intervals = timings.generated_tokens - 1,
                         .tokens = tokens_of(generation),
                         .text = doppler_generation_text(generation, nullptr)}}};
  }

  std::vector<Generation> run(doppler_scheduler* scheduler, const std::vector<Tokens>& prompts,
                              uint32_t count) {
    const doppler_generate_options options = greedy(count);
    std::vector<OneStream> streams;
    for (const Tokens& prompt : prompts) {
      doppler_request request = {};
      request.size = sizeof request;
      request.tokens = prompt.data();
      request.token_count = prompt.size();
      request.options = &options;
      doppler_stream* stream = nullptr;
      check(doppler_scheduler_submit(scheduler, &request, &stream));
      streams.emplace_back(stream);
    }
    // A reader's thread each: a stream's times are those at which its tokens were taken.
    std::vector<doppler_generation*> ended(streams.size(), nullptr);
    std::vector<doppler_error*> errors(streams.size(), nullptr);
    std::vector<std::thread> readers;
    for (size_t i = 0; i < streams.size(); ++i) {
      readers.emplace_back([&, i] { errors[i] = doppler_stream_finish(streams[i].get(), &ended[i]); });
    }
    for (std::thread& reader : readers) reader.join();
    std::vector<Generation> out;
    for (doppler_generation* generation : ended) out.emplace_back(generation);
    for (doppler_error* error : errors) check(error);
    return out;
  }

  // First all prompts get a token, then all go on together from it, out of the cache: so all decode at one depth.
  Generated many(std::vector<Tokens> prompts, uint32_t count) {
    doppler_scheduler* scheduler = nullptr;
    check(doppler_model_get_scheduler(model_.get(), &scheduler));
    const Scheduler owner(scheduler);
    Generated out;
    const auto start = Clock::now();
    std::vector<Tokens> first;
    for (const Generation& generation : run(scheduler, prompts, 1)) {
      first.push_back(tokens_of(generation.get()));
      out.streams.push_back({.ttft = timings_of(generation.get()).ttft_seconds});
    }
    out.prefill = rivals::seconds_since(start);
    for (size_t i = 0; i < prompts.size(); ++i) prompts[i].push_back(first[i].at(0));
    const std::vector<Generation> rest = run(scheduler, prompts, count - 1);
    out.seconds = rivals::seconds_since(start);
    for (size_t i = 0; i < prompts.size(); ++i) {
      const doppler_timings timings = timings_of(rest[i].get());
      Stream& stream = out.streams[i];
      stream.decode = timings.decode_seconds;
      stream.intervals = timings.generated_tokens - 1;
      stream.tokens = first[i];
      const Tokens more = tokens_of(rest[i].get());
      stream.tokens.insert(stream.tokens.end(), more.begin(), more.end());
    }
    return out;
  }

  Model model_;
  uint32_t sequences_ = 1, batch_ = 0;
};

}  // namespace

int main() {
  Doppler engine;
  return rivals::serve(engine);
}
