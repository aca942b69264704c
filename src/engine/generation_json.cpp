#include "engine/generation_json.h"

#include "base/json.h"
#include "engine/load_report.h"
#include "engine/paging_report.h"

namespace doppler::engine {

Json generation_json(const ModelInfo& info, const Counters& counters, const Generation& generation) {
  const Timings& t = generation.timings;
  Json out = Json::object();
  out["text"] = generation.text;
  out["tokens"] = generation.tokens;
  for (const TokenLogprobs& token : generation.logprobs) {
    Json top = Json::array();
    for (const auto& [id, logprob] : token.top) top.push_back({{"token", id}, {"logprob", logprob}});
    out["logprobs"].push_back({{"logprob", token.logprob}, {"top", std::move(top)}});
  }
  out["stop"] = stop_reason_name(generation.stop);
  out["model"] = {{"name", info.name}, {"architecture", info.architecture}, {"synthetic", info.synthetic}};
  out["device"] = {{"adapter", info.adapter}, {"provider", info.provider}};
  for (const ModelPart& part : info.parts) {
    out["device"]["parts"].push_back({{"adapter", part.device},
                                      {"first_layer", part.first_layer},
                                      {"layers", part.n_layers},
                                      {"weight_bytes", part.weight_bytes},
                                      {"cache_bytes", part.cache_bytes},
                                      {"scratch_bytes", part.scratch_bytes}});
  }
  out["timings"] = {{"load_seconds", info.load.seconds},      {"prompt_tokens", t.prompt_tokens},
                    {"evaluated_tokens", t.evaluated_tokens}, {"generated_tokens", t.generated_tokens},
                    {"ttft_seconds", t.ttft_seconds},         {"prefill_tokens_per_second", t.prefill_rate()},
                    {"decode_seconds", t.decode_seconds},     {"decode_tokens_per_second", t.decode_rate()}};
  if (t.forced_tokens > 0) out["timings"]["forced_tokens"] = t.forced_tokens;  // of answers with a grammar
  if (t.preemptions > 0) out["timings"]["preemptions"] = t.preemptions;
  if (t.drafted_tokens > 0) {
    out["timings"]["drafted_tokens"] = t.drafted_tokens;
    out["timings"]["accepted_tokens"] = t.accepted_tokens;
  }
  out["load"] = load_json(info.load);
  out["memory"] = {{"weight_bytes", info.weight_bytes},
                   {"cache_bytes", info.cache_bytes},
                   {"scratch_bytes", info.scratch_bytes},
                   {"total_bytes", info.weight_bytes + info.cache_bytes + info.scratch_bytes}};
  out["counters"] = {{"submits", counters.submits},
                     {"dispatches", counters.dispatches},
                     {"readback_bytes", counters.readback_bytes},
                     {"objects_created_after_load", counters.objects_created}};
  if (counters.experts.slots != 0) out["experts"] = paging_json(counters.experts);
  return out;
}

}  // namespace doppler::engine
