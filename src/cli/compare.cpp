// doppler compare: ratios of two builds from their bench reports. The sums: bench/compare.h.
#include "bench/compare.h"

#include "base/json.h"
#include "cli/measure.h"
#include "cli/verbs.h"

namespace doppler::cli {
namespace {

Result<std::vector<Json>> read_reports(const std::string& names) {
  std::vector<Json> reports;
  for (const std::string& name : split(names, ',')) {
    DP_TRY(const std::string text, read_text_file(name));
    DP_TRY(Json report, parse_json(text, name));
    reports.push_back(std::move(report));
  }
  return reports;
}

Result<Json> compare(const std::string& base_names, const std::string& candidate_names) {
  DP_TRY(const std::vector<Json> base, read_reports(base_names));
  DP_TRY(const std::vector<Json> candidate, read_reports(candidate_names));
  return bench::compare_reports(base, candidate);
}

}  // namespace

int compare_verb(std::span<const std::string> arguments) {
  std::string base, candidate, output;
  bool json = false;
  Args args("doppler compare --base FILE[,FILE] --candidate FILE[,FILE] [flags]",
            "Says how much faster one build is than another, from reports that were measured in turns on one "
            "device.");
  args.text("base", 0, "FILE[,FILE]", "reports of doppler bench -o json, one a round", &base);
  args.text("candidate", 0, "FILE[,FILE]", "as many reports of the other build", &candidate);
  args.flag("json", 0, "print JSON", &json);
  args.text("output", 0, "FILE", "write JSON there, and the table to standard output", &output);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (base.empty() || candidate.empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput,
                            "Both --base and --candidate are needed: reports of doppler bench -o json."));
  }
  const auto compared = compare(base, candidate);
  if (!compared) return exit_failed(compared.error());
  const std::string table = bench::compare_text(*compared);
  return deliver(output, json || !output.empty() ? to_text(*compared, 2) + "\n" : table, table);
}

}  // namespace doppler::cli
