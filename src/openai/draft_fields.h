// The fields of a body that make an answer faster and do not change it: OpenAI's "prediction", and our own "draft" and
// "draft_rows" (GenerateOptions).
#pragma once

#include "base/json_fwd.h"
#include "base/result.h"
#include "doppler/doppler.h"

namespace doppler::openai {

// Sets what the body says and leaves the rest. The scheduler says whether it has such a drafter. Errors: kInvalidInput,
// naming the field.
Result<void> read_draft(const Json& body, GenerateOptions* options);

}  // namespace doppler::openai
