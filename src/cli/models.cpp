// doppler models: the families, and the results of tests for each: the formats, lanes and features, and the largest
// error against the references. The data are verified_models.json, which tools/models_matrix makes of the tests'
// records.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "base/json.h"
#include "cli/common.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "cli/verified_models.h"
#include "formats/architectures/architecture.h"

namespace doppler::cli {
namespace {

std::string text_of(const Json& row, const char* key) {
  const auto text = get_string(row, key);
  return text ? text->value_or(std::string()) : std::string();
}

std::string joined(const std::set<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out.empty() ? "-" : out;
}

// The begin of the row of a format of calls (openai/formats/formats_test.cpp): it is about templates, not files and
// lanes.
constexpr std::string_view kTools = "tools_";

// The rows of a family, as sets of words.
struct Summary {
  std::set<std::string> formats, lanes, features, tools, devices;
  double cases = 0, worst = 0, worst_of_others = 0;  // worst: in the exact lane

  void add(const Json& row) {
    if (const std::string feature = text_of(row, "feature"); feature.starts_with(kTools)) {
      tools.insert(feature.substr(kTools.size()));
      return;
    }
    formats.insert(text_of(row, "format"));
    lanes.insert(text_of(row, "lane"));
    features.insert(text_of(row, "feature"));
    devices.insert(text_of(row, "device"));
    const auto count = get_number(row, "cases"), far = get_number(row, "worst");
    cases = std::max(cases, count ? count->value_or(0) : 0);
    double& distance = text_of(row, "lane") == "exact" ? worst : worst_of_others;
    distance = std::max(distance, far ? far->value_or(0) : 0);
  }
};

Json families_json(const std::map<std::string, Json>& shown) {
  Json families = Json::array();
  for (const formats::Architecture* row : formats::all_architectures()) {
    const std::string family(row->family);
    const auto found = shown.find(family);
    families.push_back({{"family", family}, {"shown", found == shown.end() ? Json::array() : found->second}});
  }
  return Json{{"families", std::move(families)}};
}

void print_table(const std::map<std::string, Json>& shown) {
  Table table({"family", "formats", "lanes", "shown", "tools", ">cases", ">exact", ">others"});
  std::set<std::string> devices;
  for (const formats::Architecture* row : formats::all_architectures()) {
    Summary summary;
    if (const auto found = shown.find(std::string(row->family)); found != shown.end()) {
      for (const Json& one : found->second) summary.add(one);
    }
    devices.insert(summary.devices.begin(), summary.devices.end());
    table.add({std::string(row->family), joined(summary.formats), joined(summary.lanes),
               joined(summary.features), joined(summary.tools), format_text("%.0f", summary.cases),
               summary.cases == 0 ? "-" : format_text("%.0e", summary.worst),
               summary.worst_of_others == 0 ? "-" : format_text("%.0e", summary.worst_of_others)});
  }
  std::printf(
      "%s\nShown on: %s. exact, others: the greatest relative L2 from the references in that lane and in the "
      "others. tools: formats of calls, by the chat template. Details: --json.\n",
      table.text().c_str(), joined(devices).c_str());
}

}  // namespace

int models_verb(std::span<const std::string> arguments) {
  bool json = false;
  Args args(
      "doppler models [flags]",
      "Lists the families of models and the results of their tests: formats, lanes, features, distance.");
  args.flag("json", 0, "print one JSON object: the result of each test", &json);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  const auto data = parse_json(kVerifiedModels, "verified_models.json");
  if (!data) return exit_failed(data.error());
  std::map<std::string, Json> shown;  // by family
  if (const Json* rows = find(*data, "shown")) {
    for (const Json& row : *rows)
      shown.try_emplace(text_of(row, "family"), Json::array()).first->second.push_back(row);
  }
  if (json) {
    std::printf("%s\n", to_text(families_json(shown), 2).c_str());
  } else {
    print_table(shown);
  }
  return 0;
}

}  // namespace doppler::cli
