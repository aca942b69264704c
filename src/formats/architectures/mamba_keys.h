// The numbers of Mamba 2 by the keys that several families share.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "formats/architectures/architecture.h"

namespace doppler::formats {

// Keys that change the maths and that the reader below understands, for GgufRow::keys.
inline constexpr std::string_view kGgufMambaKeys[] = {"ssm.conv_kernel", "ssm.state_size"};

// ssm.conv_kernel and the like.
Result<void> read_gguf_mamba(const GgufKeys& keys, ModelConfig& config);
// The same keys for a file that is written.
std::vector<GgufField> gguf_mamba_fields(const ModelConfig& config);

// transformers' time_step_limit, which published models do not have: [0, Infinity]. Error: another.
Result<void> refuse_step_limit(const Json& json);

// Sets the channels of the convolution by the other numbers. Error: numbers out of range.
Result<void> finish_mamba(ModelConfig& config);

}  // namespace doppler::formats
