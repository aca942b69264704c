// What a launch needs whose kernel walks the runs of a step (runs_one.wgsl, runs_many.wgsl).
#pragma once

#include "kernels/common/tables.h"

namespace doppler::kernels {

// Puts recurrent/runs_many in place of recurrent/runs_one in plans of many sequences, with the tables that it reads.
void add_runs(Launch& launch, const StepTables& tables);

}  // namespace doppler::kernels
