// Checks and records the begin and the end of a drafting step, and the tokens behind rows.
#include "kernels/step/draft.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/step_state.h"

namespace doppler::kernels {

Result<void> record(Context&, const DraftBegin&) {
  return fail(ErrorKind::kInternal, "draft_begin is not there yet.");
}
Result<void> record(Context&, const DraftEnd&) {
  return fail(ErrorKind::kInternal, "draft_end is not there yet.");
}
Result<void> record(Context&, const NextTokens&) {
  return fail(ErrorKind::kInternal, "next_tokens is not there yet.");
}

}  // namespace doppler::kernels
