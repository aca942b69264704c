// Fetches a file's pieces from several peers at once. Each piece is proved before it is written and noted.
//
// piece_choice.h chooses the next piece of a peer. The file's own source is asked beside the peers, for pieces that
// none of the peers has. A peer that sends a wrong byte, a wrong proof or another root is dropped at once. A peer that
// fails or is overtaken several times in a row is dropped then. When nothing else is left, a piece that is under way
// for long is asked of a second peer. Read next: file_fetch.h.
#pragma once

#include <atomic>
#include <chrono>
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
  bool in_order = false;           // takes the first piece first, instead of the rarest
  uint32_t stall_seconds = 30;  // the longest time without a byte, or without a new piece of fetching peers
  std::function<std::vector<std::string>()> new_peers = {};  // found since the last call; empty: no search
  Share* share = nullptr;                                    // offers pieces as soon as they have arrived
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& line)> on_notice;
};

struct PeerReport {
  std::string address;
  uint64_t bytes = 0;             // right pieces
  std::string dropped;            // the reason; empty: it was not dropped
  bool is_source = false;         // the file's own address; only while it is asked
  uint64_t bytes_per_second = 0;  // now
};

class FileFetch;

class Fetcher : public store::PieceSource {
 public:
  explicit Fetcher(FetchOptions options);
  ~Fetcher() override;

  // Asks the peers for the card of a model, and trusts its roots. The files of the list have no other source. Error: no
  // peer has the card.
  Result<store::DownloadList> list(const Sha256& identity, const std::string& wanted_name);
  Result<Filled> fill(const Wanted& wanted) override;
  std::vector<PeerReport> report() const;
  // Call this after the fetch of a list(). It waits until all peers have ended their fetch too; otherwise they ask the
  // first machine again for pieces that only this one has. It waits at most `most`, or until options.stop is set.
  Result<void> wait_for_others(std::chrono::seconds most);

 private:
  std::vector<std::string> take_new_peers();
  Result<store::DownloadList> take_card(const Card& card, const Sha256& identity,
                                        const std::string& wanted_name);

  struct PeerTotals {
    uint64_t bytes = 0;
    std::string dropped;
  };
  FetchOptions options_;
  std::vector<CardFile> card_files_;          // of list()
  std::map<std::string, PeerTotals> totals_;  // of the files before this one
  const FileFetch* now_ = nullptr;
};

}  // namespace doppler::swarm
