// The parts of variant.h that do not depend on the shape: what a device or a policy refuses, and the list of
// choices that `kernels --explain` prints.
#include "kernels/variant.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

// The variant that Policy::tuning names; empty: none.
std::string_view tuned_variant(const Policy& policy, std::string_view operation,
                               std::string_view shape_text) {
  const TunedChoice* tuned = policy.tuning ? policy.tuning->find(operation, shape_text) : nullptr;
  return tuned ? std::string_view(tuned->variant) : std::string_view();
}

constexpr size_t kNone = SIZE_MAX;

// The first that can be used; what stands in the choice about the others.
size_t first_usable(std::span<const Candidate> rows, Choice& choice) {
  size_t first = kNone;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string name(rows[i].name);
    if (first != kNone) {
      if (rows[i].refusal.empty()) choice.others.push_back(name);
    } else if (rows[i].refusal.empty()) {
      first = i;
    } else {
      choice.refused.push_back({name, rows[i].refusal});
    }
  }
  return first;
}

Result<Chosen> choose_forced(std::string_view operation, std::span<const Candidate> rows,
                             std::string_view shape_text, const std::string& forced) {
  std::vector<std::string> names;
  for (const Candidate& row : rows) names.emplace_back(row.name);
  DP_CHECK(check_forced(operation, forced, names));
  const size_t index = static_cast<size_t>(std::ranges::find(names, forced) - names.begin());
  if (!rows[index].refusal.empty()) {
    return fail(ErrorKind::kUnsupported, "Variant %s was asked for but cannot be used for %s: %s.",
                forced.c_str(), std::string(shape_text).c_str(), rows[index].refusal.c_str());
  }
  Chosen chosen{.index = index,
                .choice = {.operation = std::string(operation), .shape = std::string(shape_text)}};
  chosen.choice.forced = true;
  chosen.choice.variant = forced;
  // A row above the forced one that could be used is what the table would choose.
  Choice of_table;
  const size_t first = first_usable(rows, of_table);
  if (first < index) chosen.choice.table_variant = names[first];
  return chosen;
}

}  // namespace

Result<Chosen> choose(std::string_view operation, std::span<const Candidate> rows,
                      std::string_view shape_text, const Policy& policy) {
  if (const auto forced = policy.forced.find(std::string(operation)); forced != policy.forced.end()) {
    return choose_forced(operation, rows, shape_text, forced->second);
  }
  Chosen chosen{.choice = {.operation = std::string(operation), .shape = std::string(shape_text)}};
  Choice& choice = chosen.choice;
  chosen.index = first_usable(rows, choice);
  if (chosen.index == kNone) {
    return fail(ErrorKind::kUnsupported, "No variant of %s takes %s: %s.", choice.operation.c_str(),
                choice.shape.c_str(),
                choice.refused.empty() ? "the table is empty" : choice.refused.back().reason.c_str());
  }
  choice.variant = rows[chosen.index].name;
  const std::string tuned(tuned_variant(policy, operation, shape_text));
  if (tuned.empty() || tuned == choice.variant) return chosen;
  const auto row = std::ranges::find(rows, tuned, &Candidate::name);
  const std::string refusal = row == rows.end() ? "there is no such variant" : row->refusal;
  if (refusal.empty()) {
    choice.table_variant = choice.variant;
    std::ranges::replace(choice.others, tuned, choice.variant);
    choice.variant = tuned;
    chosen.index = static_cast<size_t>(row - rows.begin());
  } else {
    choice.tuning_refused = tuned + ": " + refusal;
  }
  return chosen;
}

std::string refuse_by_device(Lane lane, uint32_t needs, const gpu::Caps& caps, const Policy& policy) {
  if (!policy.allows(lane)) {
    return format_text("the lane %s is not among those of \"%s\"", lane_name(lane), policy.name.c_str());
  }
  if ((needs & kNeedSubgroups) && !caps.subgroups) return "the device has no subgroups";
  if ((needs & kNeedF16) && !caps.f16) return "the device has no f16";
  if ((needs & kNeedDp4a) && !caps.dp4a) return "the device has no packed 8-bit dot product";
  if ((needs & kNeedMatrixF16) && !caps.matrix_f16) return "the device has no f16 subgroup matrices";
  if ((needs & kNeedTint) && caps.dialect != gpu::WgslDialect::kTint) {
    return format_text("its WGSL needs Tint, which the provider %s does not use", caps.provider.c_str());
  }
  return "";
}

void note_choice(Context& ctx, const Choice& choice) {
  for (Choice& known : ctx.choices) {
    if (known.operation == choice.operation && known.shape == choice.shape &&
        known.variant == choice.variant) {
      ++known.uses;
      return;
    }
  }
  ctx.choices.push_back(choice);
}

Result<void> check_forced(std::string_view operation, std::string_view forced,
                          std::span<const std::string> names) {
  if (std::find(names.begin(), names.end(), forced) != names.end()) return {};
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  const auto near = nearest(forced, names);
  return fail(ErrorKind::kInvalidInput, "%s has no variant \"%s\"%s; its variants are %s.",
              std::string(operation).c_str(), printable(forced).c_str(),
              near ? (" (did you mean " + *near + "?)").c_str() : "", list.c_str());
}

}  // namespace doppler::kernels
