// GBNF, the grammars of llama.cpp (github.com/ggml-org/llama.cpp, grammars/README.md), written as Lark, which
// llguidance reads. A rule that leads to no recursion becomes a terminal, as regular expressions are matched exactly;
// others stay rules, whose terminals are matched as far as they go. References to tokens are refused.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace doppler::guidance {

// True: the text is GBNF and not Lark, since it has "::=" outside of quoted texts.
bool is_gbnf(std::string_view text);

// Error: a sentence with the line.
Result<std::string> gbnf_to_lark(std::string_view text);

}  // namespace doppler::guidance
