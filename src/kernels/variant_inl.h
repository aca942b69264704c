// The templates of variant.h.
#pragma once

#include <vector>

#include "kernels/variant.h"

namespace doppler::kernels {

Result<void> check_forced(std::string_view operation, std::string_view forced,
                          std::span<const std::string> names);

template <class Row, class Shape>
std::string refuse(const Row& row, const Shape& shape, const gpu::Caps& caps, const Policy& policy) {
  std::string reason = refuse_by_device(row.lane, row.needs, caps, policy);
  if (reason.empty() && row.refuse) reason = row.refuse(shape, caps);
  return reason;
}

// A row as the choice sees it: its name, and why it cannot be used; "" if it can.
struct Candidate {
  std::string_view name;
  std::string refusal;
};
struct Chosen {
  size_t index = 0;
  Choice choice;
};
// resolve() of rows whose types do not matter.
Result<Chosen> choose(std::string_view operation, std::span<const Candidate> rows,
                      std::string_view shape_text, const Policy& policy);

template <class Row, class Shape>
Result<Resolved<Row>> resolve(std::string_view operation, std::span<const Row> rows, const Shape& shape,
                              std::string_view shape_text, const gpu::Caps& caps, const Policy& policy) {
  std::vector<Candidate> candidates;
  for (const Row& row : rows) candidates.push_back({row.name, refuse(row, shape, caps, policy)});
  DP_TRY(Chosen chosen, choose(operation, candidates, shape_text, policy));
  return Resolved<Row>{.row = &rows[chosen.index], .choice = std::move(chosen.choice)};
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
