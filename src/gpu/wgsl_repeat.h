// Writes out the blocks that a WGSL file says once and means several times. Unrolled kernels need it: WGSL has no
// arrays of matrix fragments, and an array of registers costs what the unrolled names do not.
//
//   //!repeat i = 0 to 3; from = u, u, u, then     the lines up to //!end, once for each value; lists go side by side
//   s$(i) = load($(16 * i)u, $(from));             $(...): a word of a list, or whole numbers with + - * / % and ( )
//   //!end
//   //!block put r                                 a named block with parameters: no text where it stands
//   put_sum(s$(r)0, $(16 * r)u);
//   //!end
//   //!use put 2                                   the block's lines, indented as this line is
//   //!note what the block does                    a comment that is not part of the text
//
// A block may use blocks above it; repeats nest. tools/embed_wgsl expands at build time, DOPPLER_WGSL_DIR when it
// reads.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace doppler::gpu {

// The error is one sentence that begins with the line it is about, without the file's name.
std::expected<std::string, std::string> expand_wgsl(std::string_view text);

}  // namespace doppler::gpu
