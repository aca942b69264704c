// What a launch needs whose kernel walks the runs of a step (runs_one.wgsl and its twins).
#pragma once

#include "kernels/common/tables.h"

namespace doppler::kernels {

// Puts in place of recurrent/runs_one: in plans of many sequences recurrent/runs_many, with the tables that it reads; in those
// of models that draft recurrent/runs_draft.
void add_runs(Launch& launch, const Context& ctx);

}  // namespace doppler::kernels
