// A profile as a text that a person can act on (largest gaps first, then the tables), and as JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/profile.h"

namespace doppler::bench {

struct ProfileReport {
  RunFacts facts;
  std::vector<PlanProfile> plans;
  std::vector<kernels::Choice> choices;  // what was refused, for the notes
};

std::string profile_text(const ProfileReport& report);
std::string profile_json(const ProfileReport& report);
// Hints where to look first, one sentence each.
std::vector<std::string> notes(const PlanProfile& plan, const ProfileReport& report);

}  // namespace doppler::bench
