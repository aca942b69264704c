// Lanes and their policies: context.h.
#include "kernels/context.h"

#include <array>

#include "base/text.h"

namespace doppler::kernels {
namespace {

constexpr std::array kLanes = {Lane::kPortable, Lane::kSubgroups, Lane::kDp4a, Lane::kMatrix,
                               Lane::kPersistent};

constexpr uint32_t bit(Lane lane) { return 1u << static_cast<uint32_t>(lane); }

}  // namespace

const char* lane_name(Lane lane) {
  switch (lane) {
    case Lane::kPortable:
      return "portable";
    case Lane::kSubgroups:
      return "subgroups";
    case Lane::kDp4a:
      return "dp4a";
    case Lane::kMatrix:
      return "matrix";
    case Lane::kPersistent:
      return "persistent";
  }
  return "?";
}

Result<Policy> make_policy(std::string_view lane) {
  Policy policy{.name = std::string(lane)};
  if (lane == "fast") return policy;
  if (lane == "exact") {
    policy.lanes = bit(Lane::kPortable) | bit(Lane::kSubgroups);
    return policy;
  }
  if (lane == lane_name(Lane::kPersistent)) {  // prefill and whatever it refuses are the fast lanes'
    policy.allow(Lane::kPersistent);
    return policy;
  }
  std::vector<std::string> names = {"exact", "fast"};
  for (Lane each : kLanes) {
    if (lane == lane_name(each)) {
      policy.lanes = bit(Lane::kPortable) | bit(each);
      return policy;
    }
    names.emplace_back(lane_name(each));
  }
  std::string allowed;
  for (const std::string& name : names) allowed += (allowed.empty() ? "" : ", ") + name;
  const auto near = nearest(lane, names);
  return fail(ErrorKind::kInvalidInput, "There is no lane \"%s\"%s; the lanes are %s.",
              printable(lane).c_str(), near ? (" (did you mean " + *near + "?)").c_str() : "",
              allowed.c_str());
}

}  // namespace doppler::kernels
