// The templates of variant.h.
#pragma once

#include <algorithm>

#include "kernels/variant.h"

namespace doppler::kernels {

// The variant that Policy::tuning names; empty: none.
std::string_view tuned_variant(const Policy& policy, std::string_view operation, std::string_view shape_text);
Result<void> check_forced(std::string_view operation, std::string_view forced,
                          std::span<const std::string> names);

template <class Row, class Shape>
std::string refuse(const Row& row, const Shape& shape, const gpu::Caps& caps, const Policy& policy) {
  std::string reason = refuse_by_device(row.lane, row.needs, caps, policy);
  if (reason.empty() && row.refuse) reason = row.refuse(shape, caps);
  return reason;
}

template <class Row>
const Row* row_named(std::span<const Row> rows, std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

template <class Row, class Shape>
Result<Resolved<Row>> resolve(std::string_view operation, std::span<const Row> rows, const Shape& shape,
                              std::string_view shape_text, const gpu::Caps& caps, const Policy& policy) {
  const auto forced = policy.forced.find(std::string(operation));
  Choice choice{.operation = std::string(operation), .shape = std::string(shape_text)};
  if (forced != policy.forced.end()) {
    std::vector<std::string> names;
    for (const Row& row : rows) names.emplace_back(row.name);
    DP_CHECK(check_forced(operation, forced->second, names));
    choice.forced = true;
  }
  const Row* chosen = nullptr;
  for (const Row& row : rows) {
    std::string reason = refuse(row, shape, caps, policy);
    if (choice.forced && row.name != forced->second) {
      // A row above the forced one that could be used is what the table would choose.
      if (reason.empty() && !chosen && choice.table_variant.empty()) choice.table_variant = row.name;
      continue;
    }
    if (reason.empty()) {
      if (chosen) {
        choice.others.emplace_back(row.name);
      } else {
        chosen = &row;
      }
      continue;
    }
    if (choice.forced) {
      return fail(ErrorKind::kUnsupported, "Variant %s was asked for but cannot be used for %s: %s.",
                  std::string(row.name).c_str(), std::string(shape_text).c_str(), reason.c_str());
    }
    // Rows below the choice are no refusals that explain it.
    if (!chosen) choice.refused.push_back({std::string(row.name), std::move(reason)});
  }
  if (!chosen) {
    return fail(ErrorKind::kUnsupported, "No variant of %s takes %s: %s.", std::string(operation).c_str(),
                std::string(shape_text).c_str(),
                choice.refused.empty() ? "the table is empty" : choice.refused.back().reason.c_str());
  }
  const std::string_view tuned = choice.forced ? "" : tuned_variant(policy, operation, shape_text);
  if (!tuned.empty() && tuned != chosen->name) {
    const Row* row = row_named(rows, tuned);
    choice.tuning_refused = row ? refuse(*row, shape, caps, policy) : "there is no such variant";
    if (choice.tuning_refused.empty()) {
      choice.table_variant = chosen->name;
      std::ranges::replace(choice.others, std::string(tuned), std::string(chosen->name));
      chosen = row;
    } else {
      choice.tuning_refused = std::string(tuned) + ": " + choice.tuning_refused;
    }
  }
  choice.variant = chosen->name;
  return Resolved<Row>{.row = chosen, .choice = std::move(choice)};
}

template <class Row, class Shape>
Result<const Row*> select(std::string_view operation, std::span<const Row> rows, const Shape& shape,
                          std::string_view shape_text, Context& ctx) {
  DP_TRY(const Resolved<Row> resolved,
         (resolve<Row, Shape>(operation, rows, shape, shape_text, ctx.plan.caps(), ctx.policy)));
  note_choice(ctx, resolved.choice);
  return resolved.row;
}

}  // namespace doppler::kernels
