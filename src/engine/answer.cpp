#include "engine/answer.h"

#include <algorithm>

namespace doppler::engine {
namespace {

TokenLogprobs public_logprobs(const kernels::LogProbEntry& entry) {
  TokenLogprobs out{.logprob = entry.chosen, .top = {}};
  for (uint32_t i = 0; i < std::min(entry.count, kernels::kMaxLogProbs); ++i) {
    out.top.emplace_back(static_cast<int32_t>(entry.best[i].token), entry.best[i].logprob);
  }
  return out;
}

}  // namespace

Answer::Answer(const tokenizer::Tokenizer* tokenizer, std::vector<uint32_t> stop_tokens,
               const GenerateOptions& options, bool show_special)
    : stop_tokens_(std::move(stop_tokens)),
      ignore_eos_(options.ignore_eos),
      limit_(options.max_tokens),
      stops_(options.stop) {
  if (tokenizer) {
    decoder_.emplace(*tokenizer, tokenizer::DecodeOptions{.skip_special = !show_special},
                     /*at_start=*/false);
  }
}

void Answer::end(StopReason reason) {
  ended_ = true;
  result_.stop = reason;
}

std::string Answer::accept(uint32_t token, const kernels::LogProbEntry* logprobs) {
  if (logprobs) result_.logprobs.push_back(public_logprobs(*logprobs));
  result_.tokens.push_back(static_cast<int32_t>(token));
  result_.timings.generated_tokens = static_cast<uint32_t>(result_.tokens.size());
  const bool is_stop = std::ranges::find(stop_tokens_, token) != stop_tokens_.end();
  if (is_stop && !ignore_eos_) {
    end(StopReason::kEndOfText);
    return {};
  }
  std::string text;
  if (decoder_) text = stops_.push(decoder_->feed(static_cast<int32_t>(token)));
  if (stops_.found()) {
    end(StopReason::kStopString);
  } else if (limit_ != 0 && result_.tokens.size() >= limit_) {
    end(StopReason::kTokenLimit);
  }
  result_.text += text;
  return text;
}

std::string Answer::flush() {
  std::string text;
  if (decoder_ && !stops_.found()) text = stops_.push(decoder_->flush());
  text += stops_.flush();
  result_.text += text;
  return text;
}

}  // namespace doppler::engine
