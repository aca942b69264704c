// Every variant of every operation in one list, for `doppler kernels`: the only place that knows all tables.
// A new operation is one line in catalogue.cpp. Read next: variant.h (how a row is chosen).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/caps.h"
#include "kernels/context.h"

namespace doppler::kernels {

struct CatalogueRow {
  std::string operation;  // as --kernel OPERATION=VARIANT takes it: "matvec.q4_k"
  std::string variant;
  Lane lane = Lane::kPortable;
  std::vector<std::string> needs;  // optional features: "subgroups", "dp4a"
  std::string refusal;             // why it is not used for the typical shape; empty: it can be
};

// The shape that the listed refusals are for, since many depend on one: "4096 x 4096 weights, ...".
const char* typical_shape_text();

// In the order of the tables, best first within an operation.
std::vector<CatalogueRow> list_variants(const gpu::Caps& caps, const Policy& policy);

// Error: the policy forces an operation or a variant that no table has; suggests the nearest. Whether a
// variant can be used is for select() to say, once the shape is known.
Result<void> check_forced_names(const gpu::Caps& caps, const Policy& policy);

}  // namespace doppler::kernels
