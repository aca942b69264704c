// Names the shader sources that a variant is made from, so that a measurement can say what was measured: a kernel
// hint of a model file holds for as long as this text stays the same.
#pragma once

#include <string>
#include <string_view>

namespace doppler::kernels {

// All WGSL files of the variant's operation ("matvec.q4_k.tile": those of the folder matvec, or if there is none
// those named attention_decode*, ..., or those of the folder attention for attention_few) and the folders they import from, each as path, NUL, text, NUL. A change of
// any of them counts: which of them a variant uses depends on the device. Empty: no such operation.
std::string wgsl_of_operation(std::string_view variant);

}  // namespace doppler::kernels
