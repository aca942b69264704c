// The bounds of the chat-template interpreter. A template comes out of a model file and is therefore hostile
// input: every kind of growth it could cause has a named limit here, and passing one is a one-sentence error.
// The figures are ours: at least ten times what the largest public chat template needs on a long
// conversation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace doppler::tmpl {

inline constexpr size_t kMaxTemplateBytes = 1 << 20;  // the longest public template has 30 KiB
inline constexpr uint32_t kMaxNodes = 1 << 18;        // nodes of the syntax tree
inline constexpr int kMaxNesting = 150;               // brackets and statements within each other
inline constexpr int kMaxEvalDepth = 600;             // nested evaluations, macro calls included
inline constexpr int kMaxValueDepth = 100;            // lists within lists, also of the input
inline constexpr uint64_t kMaxSteps = 5'000'000;      // evaluated nodes and touched elements
inline constexpr uint64_t kMaxBytesBuilt = uint64_t{256}
                                           << 20;  // all text and lists ever made in one rendering
inline constexpr size_t kMaxOutputBytes = size_t{64} << 20;
inline constexpr int64_t kMaxRange = 100'000;  // jinja2's sandbox has the same limit
inline constexpr int kMaxFormatWidth = 1000;   // width and precision in "%10.3f"
inline constexpr uint64_t kBytesPerStep = 32;  // text work that counts as one step

}  // namespace doppler::tmpl
