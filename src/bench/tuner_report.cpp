// The findings of a search, as a table and as JSON.
#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "bench/tuner.h"

namespace doppler::bench {

std::string tuner_text(const TunerResult& result) {
  std::string out;
  size_t kept = 0;
  for (const Attempt& attempt : result.attempts) {
    kept += attempt.kept;
    out += format_text("%s %s %s, %s: %s instead of %s: %s\n", attempt.kept ? "KEPT " : "     ",
                       attempt.operation.c_str(), attempt.shape.c_str(), phase_name(attempt.phase),
                       attempt.to.c_str(), attempt.from.c_str(), attempt.verdict.c_str());
  }
  out += format_text("%zu of %zu candidates are better than what the tables say%s.\n", kept,
                     result.attempts.size(),
                     result.out_of_time ? "; the time ran out before all were measured (--budget)" : "");
  return out;
}

std::string tuner_json(const TunerResult& result, const kernels::TuningKey& key, const Origin& origin) {
  Json attempts = Json::array();
  for (const Attempt& attempt : result.attempts) {
    attempts.push_back({{"operation", attempt.operation},
                        {"shape", attempt.shape},
                        {"phase", phase_name(attempt.phase)},
                        {"from", attempt.from},
                        {"to", attempt.to},
                        {"from_seconds", attempt.from_seconds},
                        {"seconds", attempt.seconds},
                        {"ratio", attempt.ratio},
                        {"kept", attempt.kept},
                        {"verdict", attempt.verdict}});
  }
  Json out = {{"kind", "tune"}};
  add_origin(out, origin);
  out.update({{"device",
               {{"adapter", key.adapter},
                {"driver", key.driver},
                {"provider", key.provider},
                {"backend", key.backend}}},
              {"wgsl", key.wgsl},
              {"lane", key.lane},
              {"kv", key.kv},
              {"table_error", result.table_error},
              {"out_of_time", result.out_of_time},
              {"attempts", std::move(attempts)}});
  return to_text(out, 2) + "\n";
}

}  // namespace doppler::bench
