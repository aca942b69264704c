// Fetching a file's pieces from several peers at once. Each piece is proved before it is written and noted.
//
// Which piece comes next from a peer: the one that the fewest peers have, chance among equals, so that peers which start
// together fetch different pieces and then have something for each other; or the first one, for a reader that starts at
// the beginning. A peer that sends a wrong byte, a wrong proof or another root is dropped at once; one that fails or is
// overtaken several times in a row, after that. When nothing else is left, a piece that is long under way is asked of a
// second peer. Read next: fetch_peer.h.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/http_client.h"
#include "store/piece_source.h"
#include "store/store_writer.h"
#include "swarm/messages.h"
#include "swarm/share.h"

namespace doppler::swarm {

struct FetchOptions {
  std::vector<std::string> peers;  // addresses as of peer_url()
  bool in_order = false;           // the first piece first, instead of the rarest
  uint32_t stall_seconds = 30;     // without a byte, and without a new piece of peers that are still fetching
  Share* share = nullptr;          // where what has arrived is offered at once
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& line)> on_notice;
};

struct PeerReport {
  std::string address;
  uint64_t bytes = 0;   // right pieces
  std::string dropped;  // why; empty: it was not
};

class Fetcher : public store::PieceSource {
 public:
  explicit Fetcher(FetchOptions options);
  ~Fetcher() override;

  // Asks the peers for the card of a model and trusts its roots. The files of the list have no other source. Error: no
  // peer has it.
  Result<store::DownloadList> list(const Sha256& identity, const std::string& wanted_name);
  Result<uint64_t> fill(const Wanted& wanted) override;
  std::vector<PeerReport> report() const;

 private:
  struct PeerTotals {
    uint64_t bytes = 0;
    std::string dropped;
  };
  FetchOptions options_;
  std::map<Sha256, Sha256> roots_;  // by SHA-256 of the file, from a card
  std::map<std::string, PeerTotals> totals_;
};

}  // namespace doppler::swarm
