// Fuzz target: any bytes as a saved session of the model "m". A session that is read is written back to the same
// session, and a sentence refuses all other bytes.
#include "base/fuzz_check.h"
#include "engine/session_file.h"

using namespace doppler;
using namespace doppler::engine;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto session = decode_session({data, size}, "m");
  if (!session) {
    check_sentence(session.error());
    return 0;
  }
  const auto again = decode_session(encode_session("m", *session), "m");
  if (!again || again->tokens != session->tokens || again->cache != session->cache ||
      again->messages.size() != session->messages.size()) {
    std::abort();
  }
  return 0;
}
