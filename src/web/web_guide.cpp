#include "web/web_guide.h"

#include "base/host_web.h"

namespace doppler::web {
namespace {

constexpr uint32_t kBitsPerWord = 32;

// The fate of a token; the numbers are also in web/grammars.mjs.
enum class Accepted : uint32_t { kNot = 0, kGoesOn = 1, kEnd = 2 };

// Fills the words; 0: no token may be next.
DP_HOST_IMPORT("dp_grammar_allowed")
uint32_t host_grammar_allowed(uint32_t number, uint32_t* words, uint32_t count);
DP_HOST_IMPORT("dp_grammar_accept") Accepted host_grammar_accept(uint32_t number, uint32_t token);

}  // namespace

Result<std::vector<uint32_t>> WebGuide::allowed() {
  std::vector<uint32_t> mask((vocab_size_ + kBitsPerWord - 1) / kBitsPerWord);
  if (host_grammar_allowed(number_, mask.data(), static_cast<uint32_t>(mask.size())) != 0) return mask;
  return fail(ErrorKind::kUnsupported, "The grammar leaves the model no token that goes on.");
}

Result<bool> WebGuide::accept(uint32_t token) {
  const Accepted accepted = host_grammar_accept(number_, token);
  if (accepted == Accepted::kNot) return fail(ErrorKind::kInternal, "The answer left its grammar.");
  return accepted == Accepted::kGoesOn;
}

}  // namespace doppler::web
