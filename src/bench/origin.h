// The origin of a report: the program, its commit, the hour, and the preset of its flags. Reports begin with it.
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace doppler::bench {

// A preset (src/cli/presets.h) with the values that were used. Without a name: none was.
struct UsedPreset {
  std::string name;
  std::vector<std::string> flags;     // that it set, "--lane=exact"; flags on the line count more
  std::vector<std::string> left_out;  // that the verb does not have
};
Json preset_json(const UsedPreset& preset);  // {"name", "flags", "left_out"} or null

struct Origin {
  std::string version, commit,
      date;  // commit: "unknown" outside a checkout; date: UTC, "2026-01-31T12:00:00Z"
  UsedPreset preset;
};
// The origin at this moment.
Origin make_origin(std::string version, std::string commit, UsedPreset preset);
// Adds "version", "commit", "date" and "preset" to a report.
void add_origin(Json& report, const Origin& origin);
// "doppler 0.1.0 (3b9fa7b70d9a), 2026-01-31T12:00:00Z".
std::string origin_line(const Origin& origin);
// "preset throughput: --batch=32\n"; empty where none was used.
std::string preset_line(const UsedPreset& preset);

}  // namespace doppler::bench
