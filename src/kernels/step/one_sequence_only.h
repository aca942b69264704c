// The check that operations of drafting steps share.
#pragma once

#include "kernels/common/dispatch.h"
#include "kernels/common/step_state.h"

namespace doppler::kernels {

inline Result<void> check_one_sequence(const Context& ctx, const char* what) {
  if (ctx.tables.sequences != 0) {
    return fail(ErrorKind::kInternal, "%s is of plans of one sequence, not of %u.", what,
                ctx.tables.sequences);
  }
  return check_view(ctx.state, sizeof(StepState), "step state");
}

}  // namespace doppler::kernels
