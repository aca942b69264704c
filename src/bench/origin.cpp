#include "bench/origin.h"

#include <ctime>

#include "base/json.h"
#include "base/text.h"

namespace doppler::bench {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm fields = {};
  gmtime_r(&now, &fields);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &fields);
  return text;
}

}  // namespace

Json preset_json(const UsedPreset& preset) {
  if (preset.name.empty()) return Json();
  return {{"name", preset.name}, {"flags", preset.flags}, {"left_out", preset.left_out}};
}

Origin make_origin(std::string version, std::string commit, UsedPreset preset) {
  return {.version = std::move(version),
          .commit = std::move(commit),
          .date = utc_now(),
          .preset = std::move(preset)};
}

void add_origin(Json& report, const Origin& origin) {
  report["version"] = origin.version;
  report["commit"] = origin.commit;
  report["date"] = origin.date;
  report["preset"] = preset_json(origin.preset);
}

std::string origin_line(const Origin& origin) {
  return format_text("doppler %s (%s), %s", origin.version.c_str(), origin.commit.c_str(),
                     origin.date.c_str());
}

std::string preset_line(const UsedPreset& preset) {
  if (preset.name.empty()) return "";
  std::string out = "preset " + preset.name + ":";
  for (const std::string& flag : preset.flags) out += " " + flag;
  for (const std::string& flag : preset.left_out) out += " (without " + flag + ")";
  return out + "\n";
}

}  // namespace doppler::bench
