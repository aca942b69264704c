// Constants and fragments for a launch whose kernel walks the runs of a step (runs_one.wgsl and its twins).
#pragma once

#include "kernels/common/tables.h"

namespace doppler::kernels {

// Replaces recurrent/runs_one: in plans of many sequences by recurrent/runs_many, with the tables that it reads; in
// plans of models that draft by recurrent/runs_draft.
void add_runs(Launch& launch, const Context& ctx);

}  // namespace doppler::kernels
