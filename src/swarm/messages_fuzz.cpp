// Fuzz target: every text of a peer (messages.h) and its proofs (tree.h). The first byte chooses the kind.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/fuzz_check.h"
#include "store/url.h"
#include "swarm/messages.h"
#include "swarm/tree.h"

using namespace doppler;
using namespace doppler::swarm;

namespace {

void check_offer(std::string_view text, uint64_t bytes) {
  const auto offer = parse_offer(text, bytes);
  if (!offer) return check_sentence(offer.error());
  const auto again = parse_offer(offer_text(*offer), bytes);
  if (!again || again->pieces != offer->pieces || again->root != offer->root) std::abort();
}

void check_card(std::string_view text) {
  const auto card = parse_card(text, sha256(text_bytes(text)));
  if (!card) return check_sentence(card.error());
  for (const CardFile& file : card->files) {
    if (!store::is_safe_file_name(file.file) || file.bytes > kMostFileBytes) std::abort();
  }
  const std::string written = card_text(*card);
  if (!parse_card(written, sha256(text_bytes(written)))) std::abort();
}

// A proof that no tree made never leads to its root.
void check_proof(std::span<const uint8_t> message) {
  constexpr uint64_t kBytes = 3 * kPieceBytes + 1;
  static const PieceTree tree = *PieceTree::make(kBytes, std::vector<Sha256>(4));
  PieceHashes hashes(kBytes, tree.root());
  const std::string right = tree.proof(0);
  const bool is_right = std::ranges::equal(text_bytes(right), message);
  if (hashes.take_proof(0, message) != is_right || hashes.take_proof(1, message)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'o':
      check_offer(text, 9 * kPieceBytes);
      break;
    case 'c':
      check_card(text);
      break;
    case 'p':
      if (const auto path = parse_swarm_path(text); path && parse_swarm_path(path_text(*path)) != path)
        std::abort();
      break;
    case 'h':
      check_proof({data + 1, size - 1});
      break;
    case 'a':
      if (const auto url = peer_url(text); !url) {
        check_sentence(url.error());
      } else if (!store::parse_url(*url)) {
        std::abort();
      }
      break;
    default:
      if (const auto link = parse_link(text); link && link_of(*link) != text) std::abort();
  }
  return 0;
}
