// The parts of guards_native.h that know the operating system use these.
#pragma once

#include <string_view>

namespace doppler::gpu {

// A signal handler writes it.
inline constexpr std::string_view kAbortSentence =
    "error: the WebGPU provider wgpu-native gave up, most likely because the GPU device was lost.\n"
    "  It cannot recover inside this program; start again, or use Dawn (--webgpu dawn), which can.\n";
bool is_guarded();                       // this thread has an AbortGuard
void log_prints(std::string_view text);  // what a provider printed

}  // namespace doppler::gpu
