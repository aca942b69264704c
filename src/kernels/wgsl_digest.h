// Names the shader sources that a variant is made from, so that a measurement can say what was measured: a kernel
// hint of a model file holds for as long as this text stays the same.
#pragma once

#include <string>
#include <string_view>

namespace doppler::kernels {

// All WGSL files of the variant's operation and of the folders they import from, each as path, NUL, text, NUL. The
// files of an operation are those of the folder of its name ("matvec.q4_k.tile": matvec). If there is none, they are
// the files that begin with its name (attention_decode*). If there are none, they are those of the folder of the name
// without its last word (attention_skinny: attention). A change of any file counts: the device decides which files a
// variant uses. Empty: no such operation.
std::string wgsl_of_operation(std::string_view variant);

}  // namespace doppler::kernels
