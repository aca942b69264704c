#include "cli/rules_report.h"

#include "base/text.h"
#include "cli/table.h"

namespace doppler::cli {

Json rules_json(const lowering::PlanReport& report, const lowering::RuleSet& rules) {
  Json out = Json::array();
  for (const lowering::Rule& rule : lowering::rules()) {
    const auto use = report.rules.find(rule.name);
    Json refused = Json::array();
    if (use != report.rules.end()) {
      for (const auto& refusal : use->second.refused) {
        refused.push_back({{"node", refusal.node}, {"nodes", refusal.nodes}, {"reason", refusal.reason}});
      }
    }
    out.push_back({{"name", rule.name},
                   {"becomes", rule.becomes},
                   {"plain", rule.is_plain},
                   {"on", rules.has(rule.name)},
                   {"applied", use == report.rules.end() ? 0 : use->second.applied},
                   {"refused", std::move(refused)}});
  }
  return out;
}

std::string rules_text(const lowering::PlanReport& report, const lowering::RuleSet& rules) {
  Table table({"rule", ">applied", "refused at", "because"});
  for (const lowering::Rule& rule : lowering::rules()) {
    const auto use = report.rules.find(rule.name);
    std::vector<std::string> row = {std::string(rule.name)};
    if (!rules.has(rule.name)) row[0] += " (off)";
    row.push_back(use == report.rules.end() ? "0" : std::to_string(use->second.applied));
    if (use == report.rules.end() || use->second.refused.empty()) {
      table.add(row);
      continue;
    }
    for (const auto& refusal : use->second.refused) {
      const std::string more = refusal.nodes > 1 ? format_text(" and %u more", refusal.nodes - 1) : "";
      row.push_back(refusal.node + more);
      row.push_back(refusal.reason);
      table.add(row);
      row.assign(2, "");
    }
  }
  return table.text();
}

}  // namespace doppler::cli
