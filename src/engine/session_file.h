// A saved session: what was said (token ids) and the cache that goes with it, so that a long prompt is
// evaluated once. Format: the 8 bytes "DOPSESS2", u64 length of a JSON header, the header (model fingerprint,
// a digest of its weights, cache format, token count, the messages of a conversation), u32 token ids, cache bytes
// (model/device_model.h). Whose session it is: session_identity.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "doppler/doppler.h"

namespace doppler::engine {

struct SessionFile {
  std::vector<uint32_t> tokens;
  std::vector<Message> messages;  // empty: the tokens are plain text
  std::vector<uint8_t> cache;
};

std::vector<uint8_t> encode_session(const std::string& fingerprint, const SessionFile& session);
// Errors: not a session file, cut short, or of another model (names both).
Result<SessionFile> decode_session(std::span<const uint8_t> bytes, const std::string& fingerprint);

}  // namespace doppler::engine
