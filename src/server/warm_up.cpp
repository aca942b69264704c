#include "server/warm_up.h"

#include <algorithm>

#include "base/result.h"

namespace doppler::server {
namespace {

constexpr uint32_t kFewTokens = 4, kMoreTokens = 64;  // of prompts: each has plans of its own
constexpr uint32_t kAnswerTokens = 3;

Request request_of(uint32_t tokens, float temperature, uint32_t vocab_size) {
  std::vector<int32_t> ids;
  for (uint32_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(i % vocab_size));
  GenerateOptions options{.max_tokens = kAnswerTokens, .ignore_eos = true};
  options.sampling.temperature = temperature;
  return {.prompt = std::move(ids), .options = std::move(options), .cache_prompt = false};
}

Result<void> read_while(Stream& stream, const std::function<bool()>& goes_on) {
  while (goes_on()) {
    DP_TRY(const auto piece, stream.next());
    if (!piece) break;
  }
  return {};
}

}  // namespace

Result<void> warm_up(Model& model, Scheduler* scheduler, const std::function<bool()>& goes_on) {
  const ModelInfo& info = model.info();
  if (!scheduler) {
    if (info.embedding_dim == 0) return {};
    DP_TRY([[maybe_unused]] const Embedding made, model.embed(std::vector<int32_t>{0}, {}));
    return {};
  }
  const size_t devices = scheduler->load().devices.size();
  const uint32_t most = info.ctx_len > kAnswerTokens ? info.ctx_len - kAnswerTokens : 1;
  for (const float temperature : {1.0f, 0.0f}) {
    for (const uint32_t tokens : {kFewTokens, kMoreTokens}) {
      if (!goes_on()) return {};
      // All at once, so that each device gets one.
      std::vector<Stream> streams;
      for (size_t i = 0; i < devices; ++i) {
        DP_TRY(Stream stream,
               scheduler->submit(request_of(std::min(tokens, most), temperature, info.vocab_size)));
        streams.push_back(std::move(stream));
      }
      for (Stream& stream : streams) DP_CHECK(read_while(stream, goes_on));
    }
  }
  return {};
}

void MoreWarmUps::go_on() {
  if (!streams_.empty() || next_ > most_) return;
  for (uint32_t i = 0; i < next_ * devices_; ++i) {
    Request request = request_of(kFewTokens, 1.0f, vocab_size_);
    request.on_news = [weak = weak_from_this(), worker = worker_] {
      worker->post([weak] {
        if (const auto self = weak.lock()) self->look();
      });
    };
    auto stream = scheduler_.submit(std::move(request));
    if (!stream) return pause();
    streams_.push_back(std::move(*stream));
  }
}

void MoreWarmUps::look() {
  if (streams_.empty()) return;
  std::erase_if(streams_, [](Stream& stream) {
    const auto piece = stream.try_next();
    return !piece || piece->ended;
  });
  if (!streams_.empty()) return;
  next_ = next_ < most_ ? std::min(2 * next_, most_) : most_ + 1;
  go_on();
}

}  // namespace doppler::server
