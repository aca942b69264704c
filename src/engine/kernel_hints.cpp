#include "engine/kernel_hints.h"

#include <algorithm>

#include "base/log.h"
#include "base/sha256.h"
#include "kernels/catalogue.h"
#include "kernels/tuning.h"
#include "kernels/wgsl_digest.h"

namespace doppler::engine {
namespace {

using Rows = std::vector<kernels::CatalogueRow>;

const kernels::CatalogueRow* find_row(const Rows& rows, const formats::RdrrKernelHint& hint) {
  const auto it = std::ranges::find_if(rows, [&](const kernels::CatalogueRow& row) {
    return row.operation == hint.operation && row.variant == hint.variant;
  });
  return it == rows.end() ? nullptr : &*it;
}

// The tables' choice, if it is clear without the model's shapes.
const kernels::CatalogueRow* first_choice(const Rows& rows, const std::string& operation) {
  const auto it = std::ranges::find_if(rows, [&](const kernels::CatalogueRow& row) {
    return row.operation == operation && row.refusal.empty();
  });
  return it == rows.end() ? nullptr : &*it;
}

void warn(const formats::RdrrKernelHint& hint, const std::string& what) {
  log(LogLevel::kWarning, "Kernel hint %s = %s (measured on %s): %s.", printable(hint.operation).c_str(),
      printable(hint.variant).c_str(), printable(hint.device).c_str(), what.c_str());
}

// A hint of one shape, among what was tuned here.
void apply_measured(const formats::RdrrKernelHint& hint, kernels::Policy& policy) {
  const formats::RdrrMeasuredHint& m = *hint.measured;
  if (m.lane != policy.name) return;  // said nothing of this lane
  if (m.seconds >= m.table_seconds) {
    warn(hint, format_text("it took %.1f us where the tables' choice took %.1f us; the tables choose",
                           m.seconds * 1e6, m.table_seconds * 1e6));
    return;
  }
  kernels::TuningTable table = policy.tuning ? *policy.tuning : kernels::TuningTable();
  const bool added =
      table.choices
          .try_emplace({hint.operation, m.shape}, kernels::TunedChoice{.variant = hint.variant,
                                                                       .constants = m.constants,
                                                                       .seconds = m.seconds,
                                                                       .table_seconds = m.table_seconds})
          .second;
  if (added) {
    policy.tuning = std::make_shared<const kernels::TuningTable>(std::move(table));
  } else {
    log(LogLevel::kInfo, "A kernel hint for %s %s gives way to this device's own tuning.",
        printable(hint.operation).c_str(), printable(m.shape).c_str());
  }
}

}  // namespace

Task<Result<void>> apply_kernel_hints(std::span<const formats::RdrrKernelHint> hints, const gpu::Caps& caps,
                                      kernels::Policy& policy) {
  if (hints.empty()) co_return Result<void>();
  const Rows rows = kernels::list_variants(caps, policy);
  for (const formats::RdrrKernelHint& hint : hints) {
    if (hint.device != caps.adapter) {
      log(LogLevel::kInfo, "A kernel hint for %s was measured on %s, not on this device; it is not used.",
          printable(hint.operation).c_str(), printable(hint.device).c_str());
      continue;
    }
    if (policy.forced.contains(hint.operation)) {
      log(LogLevel::kInfo, "A kernel hint for %s gives way to the variant that was asked for.",
          printable(hint.operation).c_str());
      continue;
    }
    const kernels::CatalogueRow* const row = find_row(rows, hint);
    if (!row) {
      warn(hint, "this build has no such variant; the tables choose");
      continue;
    }
    const std::string wgsl = kernels::wgsl_of_operation(hint.variant);
    auto hashing = host_sha256(text_bytes(wgsl));
    const std::optional<Sha256> digest = co_await std::move(hashing);
    if (!digest || *digest != hint.wgsl_sha256) {
      warn(hint, digest
                     ? "its WGSL has changed since, so the measurement no longer holds; the tables choose"
                     : "this host cannot compute SHA-256 to see whether it still holds; the tables choose");
      continue;
    }
    if (hint.measured) {
      apply_measured(hint, policy);
      continue;
    }
    if (!row->refusal.empty()) {
      warn(hint, "it cannot be used here (" + row->refusal + "); the tables choose");
      continue;
    }
    const kernels::CatalogueRow* const first = first_choice(rows, hint.operation);
    if (first && first < row) {
      warn(hint, "used although the tables rank " + first->variant +
                     " above it; if it is slower, convert the model without the hint");
    }
    policy.forced[hint.operation] = hint.variant;
  }
  co_return Result<void>();
}

Task<Result<formats::RdrrKernelHint>> make_kernel_hint(std::string operation, std::string variant,
                                                       const gpu::Caps& caps) {
  formats::RdrrKernelHint hint{.operation = std::move(operation),
                               .variant = std::move(variant),
                               .wgsl_sha256 = {},
                               .device = caps.adapter,
                               .unknown = {}};
  const kernels::Policy policy;
  if (!find_row(kernels::list_variants(caps, policy), hint)) {
    co_return fail(ErrorKind::kInvalidInput, "Operation %s has no variant %s; doppler kernels lists all.",
                   printable(hint.operation).c_str(), printable(hint.variant).c_str());
  }
  const std::string wgsl = kernels::wgsl_of_operation(hint.variant);
  auto hashing = host_sha256(text_bytes(wgsl));
  const std::optional<Sha256> digest = co_await std::move(hashing);
  if (!digest) co_return fail(ErrorKind::kUnsupported, "This host cannot compute SHA-256.");
  hint.wgsl_sha256 = *digest;
  co_return hint;
}

}  // namespace doppler::engine
