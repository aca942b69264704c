// The templates of variant.h.
#pragma once

#include "kernels/variant.h"

namespace doppler::kernels {

// Not templated: keeps the Choice list and makes the error sentences.
void note_choice(Context& ctx, Choice choice);
Result<void> check_forced(std::string_view operation, std::string_view forced,
                          std::span<const std::string> names);

template <class Row, class Shape>
std::string refuse(const Row& row, const Shape& shape, const gpu::Caps& caps, const Policy& policy) {
  std::string reason = refuse_by_device(row.lane, row.needs, caps, policy);
  if (reason.empty() && row.refuse) reason = row.refuse(shape, caps);
  return reason;
}

template <class Row, class Shape>
const Row* would_select(std::span<const Row> rows, const Shape& shape, const gpu::Caps& caps,
                        const Policy& policy) {
  for (const Row& row : rows) {
    if (refuse(row, shape, caps, policy).empty()) return &row;
  }
  return nullptr;
}

template <class Row, class Shape>
Result<const Row*> select(std::string_view operation, std::span<const Row> rows, const Shape& shape,
                          std::string_view shape_text, Context& ctx) {
  const auto forced = ctx.policy.forced.find(std::string(operation));
  Choice choice{.operation = std::string(operation), .shape = std::string(shape_text)};
  if (forced != ctx.policy.forced.end()) {
    std::vector<std::string> names;
    for (const Row& row : rows) names.emplace_back(row.name);
    DP_CHECK(check_forced(operation, forced->second, names));
    choice.forced = true;
  }
  for (const Row& row : rows) {
    if (choice.forced && row.name != forced->second) continue;
    std::string reason = refuse(row, shape, ctx.plan.caps(), ctx.policy);
    if (reason.empty()) {
      choice.variant = row.name;
      note_choice(ctx, std::move(choice));
      return &row;
    }
    if (choice.forced) {
      return fail(ErrorKind::kUnsupported, "Variant %s was asked for but cannot be used for %s: %s.",
                  std::string(row.name).c_str(), std::string(shape_text).c_str(), reason.c_str());
    }
    choice.refused.push_back({std::string(row.name), std::move(reason)});
  }
  return fail(ErrorKind::kUnsupported, "No variant of %s takes %s: %s.", std::string(operation).c_str(),
              std::string(shape_text).c_str(),
              choice.refused.empty() ? "the table is empty" : choice.refused.back().reason.c_str());
}

}  // namespace doppler::kernels
