// Fetches one file from several peers (fetch.h): the loop, the requests, and the fate of each answer
// (file_fetch_answers.cpp).
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>

#include "swarm/fetch.h"
#include "swarm/peer_answer.h"
#include "swarm/piece_choice.h"

namespace doppler::swarm {

// Bytes a second over the last few seconds.
class Rate {
 public:
  void add(uint64_t bytes);
  uint64_t per_second() const;

 private:
  std::deque<std::pair<Clock::time_point, uint64_t>> recent_;
};

class FileFetch {
 public:
  // root: the root from a trusted source. Empty: the root that all peers agree on, which the SHA-256 of the whole file
  // proves at the end.
  FileFetch(const FetchOptions& options, const store::PieceSource::Wanted& wanted, std::optional<Sha256> root,
            store::HttpClient& client);

  struct Peer {
    std::string url;
    bool is_source = false;  // the file's own address: no offers, no proofs
    std::optional<Offer> offer;
    std::map<uint64_t, Clock::time_point> coming;  // since when the offer says so of each piece
    std::optional<Clock::duration> piece_time;     // of its last piece
    uint32_t running = 0;                          // requests
    uint32_t failures = 0;                         // in a row
    uint32_t overtaken = 0;
    bool has_failed_piece = false;  // and has sent none since; an offer does not clear it
    uint64_t most_offered = 0;      // pieces
    bool is_asked = false;          // for its offer
    Clock::time_point not_before{}, next_offer{};
    std::string dropped;   // why
    bool is_liar = false;  // it is asked no more, for any file
    uint64_t bytes = 0;
    Rate rate = {};
  };

  Result<void> run();
  const std::deque<Peer>& peers() const { return peers_; }

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

  // The loop and the requests.
  bool is_complete() const { return right_ == states_.size(); }
  bool has_more_to_expect() const;
  Result<void> settle_root();
  void trust_root();
  Result<void> start_requests();
  Result<bool> start_next(Peer& peer);
  Result<bool> start_proof(Peer& peer);
  bool is_open(uint64_t piece) const;
  bool is_worth_more(const Peer& peer) const;
  bool is_silent(const Peer& peer) const;
  Clock::duration least_patience() const;
  Clock::duration patience() const;
  std::optional<uint64_t> late_piece(const Peer& peer) const;
  Result<void> start(Peer& peer, Kind kind, uint64_t number);
  Result<void> send(const Peer& peer, const SwarmPath& path, std::optional<store::ByteRange> range);
  void count_end(const Exchange& exchange);
  void stop(std::list<Exchange>::iterator exchange);
  void stop_late();

  // The answers.
  static bool is_absent(const Exchange& exchange, const std::optional<store::Failure>& failure);
  Result<void> end(Exchange& exchange, const std::optional<store::Failure>& failure);
  void take_offer(Exchange& exchange);
  Result<void> take_proof(Exchange& exchange);
  Result<void> take_piece(Exchange& exchange);
  Result<void> judge_kept(uint64_t run);
  void note_right(uint64_t piece);
  void count_failure(Peer& peer, const std::string& why);
  void drop(Peer& peer, const std::string& why);
  void drop_liar(Peer& peer, const std::string& why);
  void learn();  // the choice of pieces, from all offers

  const FetchOptions& options_;
  const store::PieceSource::Wanted& wanted_;
  store::HttpClient& client_;
  std::deque<Peer> peers_;  // grows only
  std::list<Exchange> running_;
  std::optional<Sha256> root_;
  std::optional<PieceHashes> hashes_;
  bool is_disputed_ = false;  // the peers name several roots, and nothing says which is right
  bool is_patient_ = false;   // a link names the root, so absent peers may still come
  std::vector<State> states_;
  std::vector<uint8_t> under_way_;  // requests for each piece
  PieceChoice choice_;
  std::set<uint64_t> asked_runs_;
  uint64_t right_ = 0;
  Clock::time_point last_progress_ = Clock::now();
  Clock::time_point last_news_ = last_progress_;  // also about pieces of others
  std::shared_ptr<SharedFile> shared_;
};

}  // namespace doppler::swarm
