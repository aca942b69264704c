// digests.txt; see digest_file.h.
#include "digest_file.h"

#include <utility>
#include <vector>

#include "base/text.h"

namespace doppler::plans {
namespace {

constexpr std::string_view kHeading = "# ";
constexpr std::string_view kIs = " = ";

}  // namespace

std::string to_text(const Digests& digests) {
  // Lanes of each fixture, by model, plan and digest.
  std::map<std::string, std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>>>
      models;
  for (const auto& [key, digest] : digests) {
    std::string& lanes = models[key.model][{key.plan, digest}][key.fixture];
    lanes += (lanes.empty() ? "" : ",") + key.lane;
  }
  std::string text;
  for (const auto& [model, plans] : models) {
    text += std::string(kHeading) + model + "\n";
    for (const auto& [plan, cells] : plans) {
      text += plan.first;
      for (const auto& [fixture, lanes] : cells) text += " " + fixture + ":" + lanes;
      text += std::string(kIs) + plan.second + "\n";
    }
  }
  return text;
}

Digests from_text(std::string_view text) {
  Digests digests;
  std::string model;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with(kHeading)) {
      model = line.substr(kHeading.size());
      continue;
    }
    const size_t is = line.find(kIs);
    if (is == std::string::npos) continue;
    const std::vector<std::string> words = split(line.substr(0, is), ' ');
    for (size_t i = 1; i < words.size(); ++i) {
      const size_t colon = words[i].find(':');
      if (colon == std::string::npos) continue;
      for (const std::string& lane : split(words[i].substr(colon + 1), ',')) {
        digests[{model, lane, words[i].substr(0, colon), words[0]}] = line.substr(is + kIs.size());
      }
    }
  }
  return digests;
}

}  // namespace doppler::plans
