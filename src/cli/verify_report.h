// The findings of `doppler verify`, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace doppler::cli {

// One of the three examinations. kNone: this model has nothing to compare with; kSkipped: not requested.
struct VerifyPart {
  enum class State { kOk, kFailed, kNone, kSkipped } state = State::kSkipped;
  std::string summary;                // "12.3 MiB hashed in 0.01 s (1.9 GB/s)"
  std::vector<std::string> problems;  // sentences; of damaged files each names its own
  std::vector<std::string> files;     // damaged ones
};

struct VerifyReport {
  std::string model, format;
  VerifyPart bytes, structure, self_test;
  std::vector<std::string> notes;     // unknown members, files that are no part of the model
  std::vector<std::string> repaired;  // files

  bool ok() const {
    const auto good = [](const VerifyPart& part) { return part.state != VerifyPart::State::kFailed; };
    return good(bytes) && good(structure) && good(self_test);
  }
};

void print_verify_report(const VerifyReport& report);
Json verify_report_json(const VerifyReport& report);

}  // namespace doppler::cli
