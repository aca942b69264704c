// Base against candidate: bench reports (JSON) of two builds, measured in turns in one run, become ratios. Round i of
// the base is paired with round i of the candidate, so that a device that warms up or slows down touches both.
// Read next: report.h, whose JSON this reads; tools/gpu/run.sh, which makes it.
#pragma once

#include <span>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"

namespace doppler::bench {

// kind "compare": the device, model and settings of the runs, and for each test the medians of both with the ratios
// candidate / base of the rounds. Errors: no reports, unequal numbers of reports, or reports that must not be compared
// (of another device, driver, provider, model or intent, without a common test); both values are named.
Result<Json> compare_reports(std::span<const Json> base, std::span<const Json> candidate);

// A markdown table: test, base, candidate, ratio with its least and largest round.
std::string compare_text(const Json& comparison);

}  // namespace doppler::bench
