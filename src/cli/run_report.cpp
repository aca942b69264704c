#include "cli/run_report.h"

#include "base/json.h"

namespace doppler::cli {

std::string run_line(const Model& model, const Generation& generation) {
  const Timings& t = generation.timings;
  const ModelInfo& info = model.info();
  const uint64_t bytes = info.weight_bytes + info.cache_bytes + info.scratch_bytes;
  return format_text("TTFT %.3f s, prefill %.1f tok/s (%u tokens), decode %.1f tok/s (%u tokens), memory %s, %s (%s)%s",
                     t.ttft_seconds, t.prefill_rate(), t.evaluated_tokens, t.decode_rate(), t.generated_tokens,
                     format_bytes(bytes).c_str(), info.adapter.c_str(), info.provider.c_str(),
                     info.synthetic ? ", SYNTHETIC weights" : "");
}

std::string run_json(const Model& model, const Generation& generation) {
  const Timings& t = generation.timings;
  const ModelInfo& info = model.info();
  const Counters counters = model.counters();
  Json out = Json::object();
  out["text"] = generation.text;
  out["tokens"] = generation.tokens;
  out["stop"] = stop_reason_name(generation.stop);
  out["model"] = {{"name", info.name}, {"architecture", info.architecture}, {"synthetic", info.synthetic}};
  out["device"] = {{"adapter", info.adapter}, {"provider", info.provider}};
  out["timings"] = {{"load_seconds", info.load_seconds},
                    {"prompt_tokens", t.prompt_tokens},
                    {"evaluated_tokens", t.evaluated_tokens},
                    {"generated_tokens", t.generated_tokens},
                    {"ttft_seconds", t.ttft_seconds},
                    {"prefill_tokens_per_second", t.prefill_rate()},
                    {"decode_seconds", t.decode_seconds},
                    {"decode_tokens_per_second", t.decode_rate()}};
  out["memory"] = {{"weight_bytes", info.weight_bytes},
                   {"cache_bytes", info.cache_bytes},
                   {"scratch_bytes", info.scratch_bytes},
                   {"total_bytes", info.weight_bytes + info.cache_bytes + info.scratch_bytes}};
  out["counters"] = {{"submits", counters.submits},
                     {"dispatches", counters.dispatches},
                     {"readback_bytes", counters.readback_bytes},
                     {"objects_created_after_load", counters.objects_created}};
  return to_text(out, 2);
}

}  // namespace doppler::cli
