// The messages of peers, version 1: the paths of requests, the offer of a file, the card of a model. Each is text
// from a stranger, so every function refuses what it does not understand. Proofs are in tree.h.
//   GET /swarm/1/models/<key>            the card: names, sizes and roots of a model's files
//   GET /swarm/1/files/<key>             the offer: size, root, which pieces are there
//   GET /swarm/1/files/<key>/proof/<n>   the hashes of run n
//   GET /swarm/1/files/<key>/bytes       the bytes, by Range
// A key is a hash of something that the asker must know already. So a request tells nothing to a peer that lacks the
// file, and questions do not reveal what a peer has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace doppler::swarm {

inline constexpr uint64_t kMostCardBytes = 1 << 20;
inline constexpr size_t kMostCardFiles = 4096;

Sha256 key_of_file(const Sha256& sha256);
Sha256 key_of_model(const Sha256& card);

struct SwarmPath {
  enum class Kind : uint8_t { kCard, kOffer, kProof, kBytes };
  Kind kind = Kind::kCard;
  Sha256 key{};
  uint64_t run = 0;  // of kProof
  bool operator==(const SwarmPath&) const = default;
};
std::string path_text(const SwarmPath& path);
std::optional<SwarmPath> parse_swarm_path(std::string_view path);

// The pieces of a peer, a bit each.
class PieceSet {
 public:
  PieceSet() = default;
  explicit PieceSet(uint64_t count, bool all = false) : bits_(count, all), set_(all ? count : 0) {}
  uint64_t count() const { return bits_.size(); }
  uint64_t size() const { return set_; }  // how many it has
  bool has(uint64_t piece) const { return bits_[piece]; }
  bool has_all() const { return set_ == bits_.size(); }
  void add(uint64_t piece) {
    set_ += bits_[piece] ? 0 : 1;
    bits_[piece] = true;
  }
  bool operator==(const PieceSet&) const = default;

 private:
  std::vector<bool> bits_;
  uint64_t set_ = 0;
};

inline constexpr size_t kMostComing = 64;

struct Offer {
  uint64_t bytes = 0;
  Sha256 root{};
  PieceSet pieces;
  uint64_t peer = 0;                  // a random number of 63 bits, by which peers divide the pieces
  std::vector<uint64_t> coming = {};  // pieces that the peer is fetching, kMostComing at most
};
std::string offer_text(const Offer& offer);
// `bytes`: the size of the file that the asker knows. An offer of another size is refused.
Result<Offer> parse_offer(std::string_view text, uint64_t bytes);
uint64_t most_offer_bytes(uint64_t bytes);  // no offer of such a file is longer

// A model as a list of its files. The SHA-256 of the text is the model's identity: "swarm:<64 digits>".
struct CardFile {
  std::string file;
  uint64_t bytes = 0;
  Sha256 sha256{}, root{};
};
struct Card {
  std::string name, kind, entry;  // as in the store's record
  std::vector<CardFile> files;
};
std::string card_text(const Card& card);
// It is also an error if the text has another hash than `identity`.
Result<Card> parse_card(std::string_view text, const Sha256& identity);

inline constexpr std::string_view kLinkStart = "swarm:";
std::string link_of(const Sha256& identity);
std::optional<Sha256> parse_link(std::string_view text);

// Turns a typed "host", "host:port" or "[v6]:port" into "http://host:port". Error: any other text, such as one with a
// path.
inline constexpr uint16_t kUsualPort = 8019;
Result<std::string> peer_url(std::string_view address);

}  // namespace doppler::swarm
