#include "engine/session_file.h"

#include <cstring>

#include "base/json.h"
#include "base/text.h"

namespace doppler::engine {
namespace {

constexpr char kMagic[8] = {'D', 'O', 'P', 'S', 'E', 'S', 'S', '2'};
constexpr uint64_t kMaxHeaderBytes = 1 << 26;  // a conversation of 64 MB: far more than any context holds

template <class T>
void append(std::vector<uint8_t>& out, const T* data, size_t count) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(data);
  out.insert(out.end(), bytes, bytes + count * sizeof(T));
}

Unexpected broken() {
  return fail(ErrorKind::kInvalidInput, "This is not a saved session, or it was cut short.");
}

Result<std::vector<Message>> read_messages(const Json& header) {
  std::vector<Message> messages;
  const Json* list = find(header, "messages");
  if (!list || !list->is_array()) return messages;
  for (const Json& entry : *list) {
    DP_TRY(const auto role, get_string(entry, "role"));
    DP_TRY(const auto content, get_string(entry, "content"));
    if (!role || !content) return broken();
    messages.push_back({*role, *content});
  }
  return messages;
}

}  // namespace

std::vector<uint8_t> encode_session(const std::string& fingerprint, const SessionFile& session) {
  Json header = Json::object();
  header["model"] = fingerprint;
  header["tokens"] = session.tokens.size();
  header["cache_bytes"] = session.cache.size();
  header["messages"] = Json::array();
  for (const Message& message : session.messages) {
    Json entry = Json::object();
    entry["role"] = message.role;
    entry["content"] = message.content;
    header["messages"].push_back(std::move(entry));
  }
  const std::string text = to_text(header);
  std::vector<uint8_t> out;
  append(out, kMagic, sizeof(kMagic));
  const uint64_t length = text.size();
  append(out, &length, 1);
  append(out, text.data(), text.size());
  append(out, session.tokens.data(), session.tokens.size());
  append(out, session.cache.data(), session.cache.size());
  return out;
}

Result<SessionFile> decode_session(std::span<const uint8_t> bytes, const std::string& fingerprint) {
  uint64_t length = 0;
  if (bytes.size() < sizeof(kMagic) + sizeof(length) ||
      std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
    return broken();
  }
  std::memcpy(&length, bytes.data() + sizeof(kMagic), sizeof(length));
  bytes = bytes.subspan(sizeof(kMagic) + sizeof(length));
  if (length > kMaxHeaderBytes || length > bytes.size()) return broken();
  DP_TRY(const Json header,
         parse_json({reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(length)},
                    "The session's header"));
  bytes = bytes.subspan(length);
  DP_TRY(const auto model, get_string(header, "model"));
  DP_TRY(const auto tokens, get_integer(header, "tokens"));
  DP_TRY(const auto cache_bytes, get_integer(header, "cache_bytes"));
  if (!model || !tokens || !cache_bytes || *tokens < 0 || *cache_bytes < 0) return broken();
  if (*model != fingerprint) {
    return fail(ErrorKind::kInvalidInput, "The session was saved with another model (%s); this one is %s.",
                printable(*model, 200).c_str(), fingerprint.c_str());
  }
  const auto count = static_cast<uint64_t>(*tokens);
  if (count > bytes.size() / 4 || bytes.size() - count * 4 != static_cast<uint64_t>(*cache_bytes))
    return broken();
  SessionFile session;
  DP_TRY(session.messages, read_messages(header));
  session.tokens.resize(count);
  if (count > 0) std::memcpy(session.tokens.data(), bytes.data(), count * 4);
  session.cache.assign(bytes.begin() + static_cast<ptrdiff_t>(count * 4), bytes.end());
  return session;
}

}  // namespace doppler::engine
