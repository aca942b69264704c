#include "cli/run_report.h"

#include "base/json.h"
#include "engine/generation_json.h"
#include "engine/paging_report.h"
#include "engine/scheduler/draft_policy.h"

namespace doppler::cli {

std::string parts_line(const ModelInfo& info) {
  std::string line;
  for (const ModelPart& part : info.parts) {
    const uint64_t bytes = part.weight_bytes + part.cache_bytes + part.scratch_bytes;
    line +=
        format_text("%s %u to %u on %s (%s)", line.empty() ? "Layers" : ",", part.first_layer,
                    part.first_layer + part.n_layers - 1, part.device.c_str(), format_bytes(bytes).c_str());
  }
  return line;
}

std::string run_line(const Model& model, const Generation& generation) {
  const Timings& t = generation.timings;
  const ModelInfo& info = model.info();
  const uint64_t bytes = info.weight_bytes + info.cache_bytes + info.scratch_bytes;
  const ExpertPaging paging = model.counters().experts;
  std::string line = format_text(
      "TTFT %.3f s, prefill %.1f tok/s (%u tokens), decode %.1f tok/s (%u tokens), memory %s, %s (%s)%s",
      t.ttft_seconds, t.prefill_rate(), t.evaluated_tokens, t.decode_rate(), t.generated_tokens,
      format_bytes(bytes).c_str(), info.adapter.c_str(), info.provider.c_str(),
      info.synthetic ? ", SYNTHETIC weights" : "");
  if (t.drafted_tokens != 0) line += "\n" + engine::drafts_line(t.drafted_tokens, t.accepted_tokens);
  if (paging.slots != 0) line += "\n" + engine::paging_line(paging);
  if (!info.parts.empty()) line = parts_line(info) + "\n" + line;
  return line;
}

std::string run_json(const Model& model, const Generation& generation, const bench::UsedPreset& preset) {
  Json out = engine::generation_json(model.info(), model.counters(), generation);
  out["preset"] = bench::preset_json(preset);
  return to_text(out, 2);
}

}  // namespace doppler::cli
