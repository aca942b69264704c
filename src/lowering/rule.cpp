#include "lowering/rule.h"

#include <algorithm>

#include "base/text.h"

namespace doppler::lowering {

Result<void> RuleSet::set(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string name(assignment.substr(0, equals));
  const std::string_view value = equals == std::string_view::npos ? "" : assignment.substr(equals + 1);
  std::vector<std::string> names;
  std::string list;
  for (const Rule& rule : rules()) {
    if (rule.is_plain) continue;
    names.emplace_back(rule.name);
    list += (list.empty() ? "" : ", ") + std::string(rule.name);
  }
  if (std::ranges::find(names, name) == names.end()) {
    const auto near = nearest(name, names);
    return fail(ErrorKind::kInvalidInput, "There is no rule \"%s\"%s; the rules are %s.",
                printable(name).c_str(), near ? (" (did you mean " + *near + "?)").c_str() : "",
                list.c_str());
  }
  if (value == "off") {
    off_.insert(name);
  } else if (value == "on") {
    off_.erase(name);
  } else {
    return fail(ErrorKind::kInvalidInput, "A rule is set to on or off, as in %s=off; given was \"%s\".",
                name.c_str(), printable(assignment).c_str());
  }
  return {};
}

PlanReport::Use& PlanReport::use(std::string_view rule) { return rules[std::string(rule)]; }

void PlanReport::note_refused(std::string_view rule, const std::string& node, const std::string& reason) {
  std::vector<Refused>& list = use(rule).refused;
  const auto known = std::ranges::find(list, reason, &Refused::reason);
  if (known != list.end()) {
    ++known->nodes;
  } else {
    list.push_back({.node = node, .reason = reason});
  }
}

}  // namespace doppler::lowering
