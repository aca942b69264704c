// A rule of lowering: a pattern of adjacent nodes, its replacement, and the reasons against it. Rules are tried node by
// node in the order of the table (rules.cpp); the first that applies records the dispatches of the nodes it covers. The
// last rule of each operation is the plain one, a kernel for only that operation. Any other can be turned off by name.
// A new rule: a file, a row in rules.cpp, a row of tests/golden/rules_test.cpp (on against off), a line in
// docs/design/lowering.md.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/ops.h"

namespace doppler::lowering {

class Lowering;

// The outcome of a rule at a node.
struct Outcome {
  bool applied = false;
  std::string refusal =
      {};  // the reason if the pattern is there but cannot be lowered so; empty: it is not there
};
inline Outcome applied() { return {.applied = true}; }
inline Outcome not_matched() { return {}; }
inline Outcome refused(std::string reason) { return {.applied = false, .refusal = std::move(reason)}; }

struct Rule {
  std::string_view name;     // "deferred_rms_norm"
  std::string_view becomes;  // one line: the pattern and what it becomes
  // Kinds of nodes at which it is tried, a bit each; 0: others ask whether it is on (loading, forms of outputs, the
  // step).
  uint64_t at = 0;
  Result<Outcome> (*apply)(Lowering& lowering, uint32_t node) = nullptr;
  bool is_plain = false;
};
constexpr uint64_t at(graph::OpKind kind) { return uint64_t{1} << static_cast<uint32_t>(kind); }

std::span<const Rule> rules();

// The rules that are on: all but those turned off.
class RuleSet {
 public:
  // "NAME=off" or "NAME=on". Errors: a name that is no rule, or the plain one of an operation (the nearest is
  // suggested); another value.
  Result<void> set(std::string_view assignment);
  bool has(std::string_view name) const { return !off_.contains(name); }
  const std::set<std::string, std::less<>>& off() const { return off_; }

 private:
  std::set<std::string, std::less<>> off_;
};

// The work of the rules in one plan.
struct PlanReport {
  struct Refused {
    std::string node;  // its op_label, the first with this reason
    std::string reason;
    uint32_t nodes = 1;
  };
  struct Use {
    uint32_t applied = 0;  // nodes where it was
    std::vector<Refused> refused;
  };
  std::string plan;
  std::map<std::string, Use, std::less<>> rules;

  void note_applied(std::string_view rule) { ++use(rule).applied; }
  void note_refused(std::string_view rule, const std::string& node, const std::string& reason);

 private:
  Use& use(std::string_view rule);
};

}  // namespace doppler::lowering
