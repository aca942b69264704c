#include "swarm/messages.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "store/http_headers.h"
#include "store/model_store.h"
#include "store/url.h"
#include "swarm/tree.h"

namespace doppler::swarm {
namespace {

constexpr int64_t kVersion = 1;
constexpr std::string_view kStart = "/swarm/1/", kModels = "models/", kFiles = "files/";
constexpr std::string_view kProofs = "/proof/", kBytes = "/bytes";
constexpr size_t kDigits = 2 * sizeof(Sha256);
constexpr std::string_view kHex = "0123456789abcdef";
constexpr uint64_t kOfferSlack = 2048;  // bytes of an offer besides its pieces

Sha256 key_of(std::string_view what, const Sha256& secret) {
  Sha256Hasher hasher;
  hasher.update(text_bytes(what));
  hasher.update(secret);
  return hasher.finish();
}

std::string pieces_text(const PieceSet& pieces) {
  if (pieces.has_all()) return "all";
  std::string text;
  for (uint64_t at = 0; at < pieces.count(); at += 4) {
    int digit = 0;
    for (uint64_t i = at; i < std::min(pieces.count(), at + 4); ++i)
      digit |= pieces.has(i) ? 8 >> (i - at) : 0;
    text += kHex[static_cast<size_t>(digit)];
  }
  return text;
}

std::optional<PieceSet> parse_pieces(std::string_view text, uint64_t count) {
  if (text == "all") return PieceSet(count, true);
  if (text.size() != (count + 3) / 4) return {};
  PieceSet pieces(count);
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t digit = kHex.find(text[at]);
    if (digit == kHex.npos) return {};
    for (uint64_t i = 0; i < 4; ++i) {
      if ((digit & (8u >> i)) == 0) continue;
      if (at * 4 + i >= count) return {};
      pieces.add(at * 4 + i);
    }
  }
  return pieces;
}

Unexpected bad(const char* what) { return fail(ErrorKind::kInvalidInput, "A peer sent %s.", what); }

// Treats an absent member like one of another type.
std::optional<std::string> text_of(const Json& object, const char* key) {
  auto value = get_string(object, key);
  return value ? std::move(*value) : std::nullopt;
}
std::optional<Sha256> hash_of(const Json& object, const char* key) {
  const auto text = text_of(object, key);
  return text ? sha256_from_hex(*text) : std::nullopt;
}
std::optional<uint64_t> size_of(const Json& object) {
  const auto value = get_integer(object, "bytes");
  if (!value || !*value || **value < 0 || static_cast<uint64_t>(**value) > kMostFileBytes) return {};
  return static_cast<uint64_t>(**value);
}
// The pieces that the peer is fetching. No value: the list is wrong.
std::optional<std::vector<uint64_t>> coming_of(const Json& offer, uint64_t count) {
  std::vector<uint64_t> pieces;
  const Json* list = find(offer, "coming");
  if (!list) return pieces;
  if (!list->is_array() || list->size() > kMostComing) return {};
  for (const Json& one : *list) {
    if (!one.is_number_unsigned() || one.get<uint64_t>() >= count) return {};
    pieces.push_back(one.get<uint64_t>());
  }
  return pieces;
}
bool has_version(const Json& object) {
  const auto version = get_integer(object, "version");
  return version && *version == kVersion;
}

}  // namespace

Sha256 key_of_file(const Sha256& sha256) { return key_of("doppler swarm 1 file\n", sha256); }
Sha256 key_of_model(const Sha256& card) { return key_of("doppler swarm 1 model\n", card); }

std::string path_text(const SwarmPath& path) {
  std::string text(kStart);
  text += path.kind == SwarmPath::Kind::kCard ? kModels : kFiles;
  text += sha256_hex(path.key);
  if (path.kind == SwarmPath::Kind::kProof) text += std::string(kProofs) + std::to_string(path.run);
  if (path.kind == SwarmPath::Kind::kBytes) text += kBytes;
  return text;
}

std::optional<SwarmPath> parse_swarm_path(std::string_view path) {
  const auto drop = [&](std::string_view start) {
    const bool is_there = path.starts_with(start);
    if (is_there) path.remove_prefix(start.size());
    return is_there;
  };
  if (!drop(kStart)) return {};
  const bool is_model = drop(kModels);
  if (!is_model && !drop(kFiles)) return {};
  const auto key = sha256_from_hex(path.substr(0, kDigits));
  if (!key) return {};
  path.remove_prefix(kDigits);
  SwarmPath parsed{.kind = is_model ? SwarmPath::Kind::kCard : SwarmPath::Kind::kOffer, .key = *key};
  if (path.empty()) return parsed;
  if (is_model) return {};
  if (path == kBytes) {
    parsed.kind = SwarmPath::Kind::kBytes;
    return parsed;
  }
  if (!drop(kProofs)) return {};
  const auto run = store::parse_decimal(path);
  if (!run || *run >= run_count(kMostFileBytes)) return {};
  parsed.kind = SwarmPath::Kind::kProof;
  parsed.run = *run;
  return parsed;
}

std::string offer_text(const Offer& offer) {
  const Json json = {{"version", kVersion},
                     {"bytes", offer.bytes},
                     {"root", sha256_hex(offer.root)},
                     {"peer", offer.peer},
                     {"pieces", pieces_text(offer.pieces)},
                     {"coming", offer.coming}};
  return to_text(json) + "\n";
}

uint64_t most_offer_bytes(uint64_t bytes) { return piece_count(bytes) / 4 + kOfferSlack; }

Result<Offer> parse_offer(std::string_view text, uint64_t bytes) {
  if (text.size() > most_offer_bytes(bytes)) return bad("an offer that is too long");
  const auto json = parse_json(text, "offer", 2);
  if (!json || !json->is_object() || !has_version(*json)) return bad("no offer of version 1");
  const auto size = size_of(*json);
  const auto root = hash_of(*json, "root");
  const auto shown = text_of(*json, "pieces");
  if (!size || *size != bytes) return bad("an offer of a file of another size");
  if (!root || !shown) return bad("an offer without a root or its pieces");
  auto pieces = parse_pieces(*shown, piece_count(bytes));
  auto coming = coming_of(*json, piece_count(bytes));
  if (!pieces || !coming) return bad("an offer with a wrong list of pieces");
  const auto peer = get_integer(*json, "peer");
  if (!peer || peer->value_or(0) < 0) return bad("an offer with a wrong number of its peer");
  return Offer{.bytes = bytes,
               .root = *root,
               .pieces = std::move(*pieces),
               .peer = static_cast<uint64_t>(peer->value_or(0)),
               .coming = std::move(*coming)};
}

std::string card_text(const Card& card) {
  Json files = Json::array();
  for (const CardFile& file : card.files) {
    files.push_back({{"file", file.file},
                     {"bytes", file.bytes},
                     {"sha256", sha256_hex(file.sha256)},
                     {"root", sha256_hex(file.root)}});
  }
  return to_text(Json{{"version", kVersion},
                      {"name", card.name},
                      {"kind", card.kind},
                      {"entry", card.entry},
                      {"files", std::move(files)}}) +
         "\n";
}

Result<Card> parse_card(std::string_view text, const Sha256& identity) {
  if (text.size() > kMostCardBytes) return bad("a model card that is too long");
  if (sha256(text_bytes(text)) != identity) return bad("a model card that is not the one of this link");
  const auto json = parse_json(text, "card", 4);
  if (!json || !json->is_object() || !has_version(*json)) return bad("no model card of version 1");
  const auto name = text_of(*json, "name"), kind = text_of(*json, "kind"), entry = text_of(*json, "entry");
  const Json* files = find(*json, "files");
  if (!name || !store::is_store_name(*name) || !kind || !entry || !files || !files->is_array()) {
    return bad("a model card without a name, a kind, an entry or files");
  }
  if (*kind != "gguf" && *kind != "rdrr" && *kind != "huggingface")
    return bad("a model card of an unknown kind");
  if (files->empty() || files->size() > kMostCardFiles) return bad("a model card with no files or too many");
  Card card{.name = *name, .kind = *kind, .entry = *entry, .files = {}};
  std::set<std::string> seen;
  for (const Json& listed : *files) {
    if (!listed.is_object()) return bad("a model card with a file that is none");
    const auto file = text_of(listed, "file");
    const auto bytes = size_of(listed);
    const auto whole = hash_of(listed, "sha256"), root = hash_of(listed, "root");
    if (!file || !store::is_safe_file_name(*file) || !bytes || !whole || !root ||
        !seen.insert(*file).second) {
      return bad("a model card with a wrong file name, size or hash");
    }
    card.files.push_back({.file = *file, .bytes = *bytes, .sha256 = *whole, .root = *root});
  }
  if (!card.entry.empty() && !seen.contains(card.entry))
    return bad("a model card whose entry is none of its files");
  return card;
}

std::string link_of(const Sha256& identity) { return std::string(kLinkStart) + sha256_hex(identity); }

std::optional<Sha256> parse_link(std::string_view text) {
  if (!text.starts_with(kLinkStart)) return {};
  return sha256_from_hex(text.substr(kLinkStart.size()));
}

Result<std::string> peer_url(std::string_view address) {
  const auto refuse = [&] {
    return fail(ErrorKind::kInvalidInput,
                "\"%s\" is no address of a peer; allowed are HOST, HOST:PORT and [IPv6]:PORT.",
                printable(address).c_str());
  };
  std::string_view host = address, port;
  const size_t bracket = address.find(']');
  const bool is_v6 = address.starts_with('[');
  if (is_v6 && bracket == address.npos) return refuse();
  if (const size_t colon = address.find(':', is_v6 ? bracket : 0); colon != address.npos) {
    host = address.substr(0, colon);
    port = address.substr(colon + 1);
    const auto number = store::parse_decimal(port);
    if (!number || *number == 0 || *number > UINT16_MAX) return refuse();
  }
  const std::string_view inner =
      is_v6 ? host.substr(1, host.size() - std::min<size_t>(2, host.size())) : host;
  const bool is_plain = std::ranges::all_of(inner, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || (is_v6 ? c == ':' : c == '_');
  });
  if (inner.empty() || !is_plain || (is_v6 && !host.ends_with(']'))) return refuse();
  return "http://" + std::string(host) + ":" +
         (port.empty() ? std::to_string(kUsualPort) : std::string(port));
}

}  // namespace doppler::swarm
