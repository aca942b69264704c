#include "cli/verify_report.h"

#include <cstdio>

namespace doppler::cli {
namespace {

const char* state_name(VerifyPart::State state) {
  switch (state) {
    case VerifyPart::State::kOk:
      return "ok";
    case VerifyPart::State::kFailed:
      return "FAILED";
    case VerifyPart::State::kNone:
      return "none";
    case VerifyPart::State::kSkipped:
      return "skipped";
  }
  return "?";
}

void print_part(const char* name, const VerifyPart& part) {
  std::printf("  %-10s %s%s%s\n", name, state_name(part.state), part.summary.empty() ? "" : ": ",
              part.summary.c_str());
  for (const std::string& problem : part.problems) std::printf("    %s\n", problem.c_str());
}

Json part_json(const VerifyPart& part) {
  std::string state = state_name(part.state);
  if (part.state == VerifyPart::State::kFailed) state = "failed";
  return {{"state", state}, {"summary", part.summary}, {"problems", part.problems}, {"files", part.files}};
}

}  // namespace

void print_verify_report(const VerifyReport& report) {
  std::printf("%s: %s\n", report.model.c_str(), report.format.c_str());
  for (const std::string& file : report.repaired) std::printf("  repaired   %s\n", file.c_str());
  print_part("bytes", report.bytes);
  print_part("structure", report.structure);
  print_part("self test", report.self_test);
  for (const std::string& note : report.notes) std::printf("  note: %s\n", note.c_str());
}

Json verify_report_json(const VerifyReport& report) {
  return {{"model", report.model},
          {"format", report.format},
          {"ok", report.ok()},
          {"bytes", part_json(report.bytes)},
          {"structure", part_json(report.structure)},
          {"self_test", part_json(report.self_test)},
          {"notes", report.notes},
          {"repaired", report.repaired}};
}

}  // namespace doppler::cli
