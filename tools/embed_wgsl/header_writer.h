// Turns a scanned WGSL file into the C++ header that the host code includes, and the list of all files into
// the registry of gpu::embedded_wgsl(). Read next: embed_wgsl.cpp (the program), cmake/EmbedWgsl.cmake
// (its caller).
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "wgsl_reader.h"

namespace doppler::embed_wgsl {

// `path` is relative to src/kernels: "linear/matvec/matvec_q4_k.wgsl". The header opens namespace
// doppler::wgsl::matvec_q4_k. Fails on a file name or a text that cannot be written as C++.
std::expected<std::string, std::string> write_header(std::string_view path, std::string_view text,
                                                     const WgslFile& file);

// A source that includes the headers of all `paths` and defines gpu::embedded_wgsl(), sorted by path.
std::string write_registry(std::vector<std::string> paths);

// "kernels/linear/matvec/matvec_q4_k.wgsl.h": how the header of `path` is included.
std::string header_include(std::string_view path);

}  // namespace doppler::embed_wgsl
