// A saved session: what was said (token ids) and the cache that goes with it, so that a long prompt is
// evaluated once. Format: the 8 bytes "DOPSESS1", u64 length of a JSON header, the header (model fingerprint,
// a digest of its weights, cache format, token count, the messages of a conversation), u32 token ids, cache bytes
// (model/plan_runner.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "doppler/doppler.h"
#include "engine/loaded_model.h"

namespace doppler::engine {

struct SessionFile {
  std::vector<uint32_t> tokens;
  std::vector<Message> messages;  // empty: the tokens are plain text
  std::vector<uint8_t> cache;
};

// 16 hexadecimal digits over samples of the weights: 1 KiB from the middle of up to 32 tensors, evenly taken. Models of one
// shape that were trained or quantised differently differ in them; it is no defence against a forger.
Task<Result<std::string>> weights_digest(const formats::Checkpoint& checkpoint);
// What must agree between the model that saved and the one that restores.
Task<Result<std::string>> session_fingerprint(const LoadedModel& loaded);

std::vector<uint8_t> encode_session(const std::string& fingerprint, const SessionFile& session);
// Errors: not a session file, cut short, or of another model (names both).
Result<SessionFile> decode_session(std::span<const uint8_t> bytes, const std::string& fingerprint);

}  // namespace doppler::engine
