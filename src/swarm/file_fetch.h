// One file from several peers (fetch.h): the loop, the choice of the next piece, and what becomes of each answer.
#pragma once

#include <list>
#include <memory>
#include <random>
#include <set>

#include "swarm/fetch.h"
#include "swarm/peer_answer.h"

namespace doppler::swarm {

class FileFetch {
 public:
  // root: from a trusted source; empty: what all peers agree on, which the SHA-256 of the whole proves at the end.
  FileFetch(const FetchOptions& options, const store::PieceSource::Wanted& wanted, std::optional<Sha256> root,
            store::HttpClient& client);

  struct Peer {
    std::string url;
    std::optional<Offer> offer;
    uint32_t running = 0;   // requests
    uint32_t failures = 0;  // in a row
    uint32_t overtaken = 0;
    bool is_asked = false;  // for its offer
    Clock::time_point not_before{}, next_offer{};
    std::string dropped;   // why
    bool is_liar = false;  // nothing more is asked of it, for any file
    uint64_t bytes = 0;
  };

  Result<void> run();
  const std::vector<Peer>& peers() const { return peers_; }

 private:
  enum class Kind : uint8_t { kOffer, kProof, kPiece };
  enum class State : uint8_t { kMissing, kKept, kRight };  // kept: from an earlier run, not yet judged
  struct Exchange : PeerAnswer {
    Exchange(Peer& of, Kind what, uint64_t which, uint64_t most, std::optional<store::ByteRange> range,
             uint64_t total)
        : PeerAnswer(most, range, total), peer(of), kind(what), number(which), started(Clock::now()) {}
    Peer& peer;
    Kind kind;
    uint64_t number;  // of the run or the piece
    Clock::time_point started;
  };

  bool is_complete() const { return right_ == states_.size(); }
  bool has_more_to_expect() const;
  Result<void> settle_root();
  void begin_sharing();  // only of a root that is trusted: nothing unproved is passed on
  Result<void> start_requests();
  Result<bool> start_next(Peer& peer);
  std::optional<uint64_t> late_piece(const Peer& peer) const;
  Result<void> start(Peer& peer, Kind kind, uint64_t number);
  Result<void> end(Exchange& exchange, const std::optional<store::Failure>& failure);
  void take_offer(Exchange& exchange);
  Result<void> take_proof(Exchange& exchange);
  Result<void> take_piece(Exchange& exchange);
  Result<void> judge_kept(uint64_t run);
  void note_right(uint64_t piece);
  void count_failure(Peer& peer, const std::string& why);
  void drop(Peer& peer, const std::string& why);
  void drop_liar(Peer& peer, const std::string& why);
  void count_end(const Exchange& exchange);
  void stop(std::list<Exchange>::iterator exchange);
  void stop_late();
  void count_rarity();

  const FetchOptions& options_;
  const store::PieceSource::Wanted& wanted_;
  store::HttpClient& client_;
  std::vector<Peer> peers_;
  std::list<Exchange> running_;
  std::optional<Sha256> root_;
  std::optional<PieceHashes> hashes_;
  bool is_disputed_ = false;  // the peers name several roots, and nothing says which is right
  std::vector<State> states_;
  std::vector<uint8_t> under_way_;  // requests for each piece
  std::vector<uint16_t> rarity_;    // how many peers offer it
  std::set<uint64_t> asked_runs_;
  uint64_t right_ = 0;
  Clock::time_point last_progress_ = Clock::now();
  std::shared_ptr<SharedFile> shared_;
  std::minstd_rand chance_{std::random_device{}()};
};

}  // namespace doppler::swarm
