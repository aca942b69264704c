#include "swarm/file_fetch.h"

#include <algorithm>

#include "base/text.h"
#include "store/retry.h"

namespace doppler::swarm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kPollMs = 50;            // how soon a stop or a pause's end is noticed
constexpr size_t kMostRunning = 32;         // requests; each holds a piece in memory
constexpr uint32_t kMostRunningOfPeer = 2;  // one is sent while the other is judged
constexpr uint32_t kMostFailures = 3;       // in a row
constexpr uint32_t kMostOvertaken = 3;
constexpr auto kOfferEvery = seconds(1);       // of a peer that is still fetching
constexpr auto kLateAfter = seconds(5);        // then another peer is asked as well, if nothing else is left
constexpr auto kMostPieceTime = seconds(300);  // 3.5 KB/s: slower is a failure
constexpr auto kFirstPause = milliseconds(300);

}  // namespace

FileFetch::FileFetch(const FetchOptions& options, const store::PieceSource::Wanted& wanted,
                     std::optional<Sha256> root, store::HttpClient& client)
    : options_(options),
      wanted_(wanted),
      client_(client),
      root_(root),
      states_(piece_count(wanted.bytes), State::kMissing),
      under_way_(states_.size()),
      rarity_(states_.size()) {
  for (const std::string& url : options.peers) peers_.push_back({.url = url});
  for (size_t piece = 0; piece < states_.size(); ++piece) {
    if (wanted.journal.done(piece) == wanted.journal.size(piece)) states_[piece] = State::kKept;
  }
  if (root_) hashes_.emplace(wanted.bytes, *root_);
}

Result<void> FileFetch::run() {
  if (hashes_) begin_sharing();
  for (;;) {
    DP_CHECK(store::check_not_stopped(options_.stop));
    stop_late();
    DP_CHECK(settle_root());
    if (is_disputed_ || is_complete()) break;
    DP_CHECK(start_requests());
    if (running_.empty() && !has_more_to_expect()) break;
    DP_TRY(const std::vector<store::Ended> ended, client_.wait(kPollMs));
    for (const store::Ended& one : ended) {
      const auto at = std::ranges::find_if(running_, [&](const Exchange& e) { return &e == one.receiver; });
      if (at == running_.end()) continue;  // its peer was dropped meanwhile
      std::list<Exchange> taken;
      taken.splice(taken.begin(), running_, at);
      DP_CHECK(end(taken.front(), one.failure));
    }
  }
  client_.stop_all();
  running_.clear();
  return {};
}

// Nothing is under way: whether that may change.
bool FileFetch::has_more_to_expect() const {
  const auto now = Clock::now();
  if (now - last_progress_ > seconds(options_.stall_seconds)) return false;
  return std::ranges::any_of(peers_, [&](const Peer& peer) {
    if (!peer.dropped.empty()) return false;
    if (peer.not_before > now) return true;
    return !wanted_.has_other_source && !(peer.offer && peer.offer->pieces.has_all());
  });
}

Result<void> FileFetch::settle_root() {
  if (hashes_) return {};
  for (const Peer& peer : peers_) {
    if (peer.dropped.empty() && !peer.offer) return {};  // its answer may disagree
  }
  for (Peer& peer : peers_) {
    if (!peer.offer) continue;
    if (root_ && *root_ != peer.offer->root) {
      is_disputed_ = true;
      if (options_.on_notice) {
        options_.on_notice("The peers name different roots for one file, so it comes from its source only.");
      }
      return {};
    }
    root_ = peer.offer->root;
  }
  if (!root_) return {};
  hashes_.emplace(wanted_.bytes, *root_);
  return {};
}

void FileFetch::begin_sharing() {
  if (!options_.share) return;
  auto copy = wanted_.file.duplicate();
  if (!copy) return;
  shared_ = std::make_shared<SharedFile>(std::move(*copy), wanted_.bytes, *root_);
  options_.share->add_file(wanted_.sha256, shared_);
}

Result<void> FileFetch::start_requests() {
  const auto now = Clock::now();
  for (Peer& peer : peers_) {
    if (!peer.dropped.empty() || peer.not_before > now) continue;
    const bool is_partial = !peer.offer || !peer.offer->pieces.has_all();
    if (!peer.is_asked && is_partial && peer.next_offer <= now) DP_CHECK(start(peer, Kind::kOffer, 0));
    if (!hashes_ || !peer.offer) continue;
    while (peer.running < kMostRunningOfPeer && running_.size() < kMostRunning) {
      DP_TRY(const bool has_started, start_next(peer));
      if (!has_started) break;
    }
  }
  return {};
}

// The next proof or piece from this peer; false: it has nothing that is needed now.
Result<bool> FileFetch::start_next(Peer& peer) {
  std::optional<uint64_t> best;
  uint32_t equals = 0;
  for (uint64_t piece = 0; piece < states_.size(); ++piece) {
    const State state = states_[piece];
    if (state == State::kRight || !peer.offer->pieces.has(piece)) continue;
    if (!hashes_->knows(piece)) {
      if (!asked_runs_.insert(piece / kRunPieces).second) continue;
      DP_CHECK(start(peer, Kind::kProof, piece / kRunPieces));
      return true;
    }
    if (under_way_[piece] > 0) continue;
    if (best && rarity_[piece] > rarity_[*best]) continue;
    equals = best && rarity_[piece] == rarity_[*best] ? equals + 1 : 1;
    if (chance_() % equals == 0) best = piece;
    if (options_.in_order) break;
  }
  if (!best) best = late_piece(peer);
  if (!best) return false;
  DP_CHECK(start(peer, Kind::kPiece, *best));
  return true;
}

std::optional<uint64_t> FileFetch::late_piece(const Peer& peer) const {
  const auto late = std::min<Clock::duration>(kLateAfter, seconds(options_.stall_seconds));
  const auto before = Clock::now() - late;
  for (const Exchange& exchange : running_) {  // the oldest first
    if (exchange.kind == Kind::kPiece && &exchange.peer != &peer && exchange.started < before &&
        under_way_[exchange.number] == 1 && peer.offer->pieces.has(exchange.number)) {
      return exchange.number;
    }
  }
  return {};
}

Result<void> FileFetch::start(Peer& peer, Kind kind, uint64_t number) {
  const bool is_piece = kind == Kind::kPiece;
  SwarmPath path{.kind = is_piece ? SwarmPath::Kind::kBytes : SwarmPath::Kind::kOffer,
                 .key = key_of_file(wanted_.sha256)};
  uint64_t most = most_offer_bytes(wanted_.bytes);
  std::optional<store::ByteRange> range;
  if (kind == Kind::kProof) {
    path.kind = SwarmPath::Kind::kProof;
    path.run = number;
    most = hashes_->proof_bytes(number);
  } else if (is_piece) {
    most = piece_size(wanted_.bytes, number);
    range = store::ByteRange{number * kPieceBytes, number * kPieceBytes + most - 1};
    ++under_way_[number];
  } else {
    peer.is_asked = true;
  }
  ++peer.running;
  Exchange& exchange = running_.emplace_back(peer, kind, number, most, range, wanted_.bytes);
  return client_.start(
      {.url = peer.url + path_text(path), .range = range, .if_range = {}, .bearer = {}, .is_direct = true},
      exchange);
}

void FileFetch::count_end(const Exchange& exchange) {
  --exchange.peer.running;
  if (exchange.kind == Kind::kOffer) exchange.peer.is_asked = false;
  if (exchange.kind == Kind::kProof) asked_runs_.erase(exchange.number);
  if (exchange.kind == Kind::kPiece) --under_way_[exchange.number];
}

void FileFetch::stop(std::list<Exchange>::iterator exchange) {
  client_.stop(*exchange);
  count_end(*exchange);
  running_.erase(exchange);
}

Result<void> FileFetch::end(Exchange& exchange, const std::optional<store::Failure>& failure) {
  Peer& peer = exchange.peer;
  count_end(exchange);
  if (failure && !failure->may_pass) {
    drop_liar(peer, failure->error.sentence());
  } else if (failure) {
    count_failure(peer, failure->error.sentence());
  } else if (!exchange.has_content()) {
    count_failure(peer, format_text("it answers with HTTP %d", exchange.status()));
    if (exchange.kind == Kind::kOffer && exchange.status() == 404) drop(peer, "it does not have the file");
  } else if (exchange.kind == Kind::kOffer) {
    take_offer(exchange);
  } else if (exchange.kind == Kind::kProof) {
    return take_proof(exchange);
  } else {
    return take_piece(exchange);
  }
  return {};
}

void FileFetch::take_offer(Exchange& exchange) {
  Peer& peer = exchange.peer;
  auto offer = parse_offer(exchange.text(), wanted_.bytes);
  if (!offer) return drop_liar(peer, offer.error().sentence());
  if (root_ && hashes_ && offer->root != *root_) return drop_liar(peer, "it offers a file with another root");
  peer.offer = std::move(*offer);
  peer.failures = 0;
  peer.next_offer = Clock::now() + kOfferEvery;
  count_rarity();
}

Result<void> FileFetch::take_proof(Exchange& exchange) {
  if (!hashes_->take_proof(exchange.number, exchange.content())) {
    drop_liar(exchange.peer, "it sent a wrong proof");
    return {};
  }
  exchange.peer.failures = 0;
  if (shared_) shared_->add_proof(exchange.number, hashes_->proof(exchange.number));
  return judge_kept(exchange.number);
}

Result<void> FileFetch::judge_kept(uint64_t run) {
  std::vector<uint8_t> content(kPieceBytes);
  const uint64_t end = std::min<uint64_t>(states_.size(), (run + 1) * kRunPieces);
  for (uint64_t piece = run * kRunPieces; piece < end; ++piece) {
    if (states_[piece] != State::kKept) continue;
    const auto bytes = std::span(content).first(piece_size(wanted_.bytes, piece));
    DP_TRY(const size_t count, wanted_.file.read_at(bytes, piece * kPieceBytes));
    if (hashes_->is_right(piece, bytes.first(count))) {
      note_right(piece);
    } else {
      states_[piece] = State::kMissing;
      DP_CHECK(wanted_.journal.note(piece, 0));
    }
  }
  wanted_.on_progress();
  return {};
}

void FileFetch::note_right(uint64_t piece) {
  states_[piece] = State::kRight;
  ++right_;
  if (shared_) shared_->add_piece(piece);
}

Result<void> FileFetch::take_piece(Exchange& exchange) {
  Peer& peer = exchange.peer;
  const uint64_t piece = exchange.number;
  if (!hashes_->is_right(piece, exchange.content())) {
    drop_liar(peer,
              format_text("it sent wrong bytes for piece %llu", static_cast<unsigned long long>(piece)));
    return {};
  }
  peer.failures = 0;
  if (states_[piece] == State::kRight) return {};
  DP_CHECK(wanted_.file.write_at(exchange.content(), piece * kPieceBytes));
  DP_CHECK(wanted_.journal.note(piece, exchange.content().size()));
  note_right(piece);
  peer.bytes += exchange.content().size();
  last_progress_ = Clock::now();
  wanted_.on_progress();
  const auto other = std::ranges::find_if(
      running_, [&](const Exchange& e) { return e.kind == Kind::kPiece && e.number == piece; });
  if (other == running_.end()) return {};
  Peer& slow = other->peer;
  stop(other);
  if (++slow.overtaken >= kMostOvertaken) drop(slow, "it is much slower than the others");
  return {};
}

void FileFetch::count_failure(Peer& peer, const std::string& why) {
  if (++peer.failures >= kMostFailures) return drop(peer, why);
  peer.not_before = Clock::now() + kFirstPause * (1u << peer.failures);
  peer.next_offer = {};
  if (hashes_) peer.offer.reset();  // what it had may be gone
  count_rarity();
}

void FileFetch::drop(Peer& peer, const std::string& why) {
  if (!peer.dropped.empty()) return;
  peer.dropped = why;
  peer.offer.reset();
  for (auto at = running_.begin(); at != running_.end();) {
    const auto next = std::next(at);
    if (&at->peer == &peer) stop(at);
    at = next;
  }
  count_rarity();
}

void FileFetch::drop_liar(Peer& peer, const std::string& why) {
  peer.is_liar = true;
  drop(peer, why);
}

void FileFetch::stop_late() {
  const auto before = Clock::now() - kMostPieceTime;
  const auto late = std::ranges::find_if(running_, [&](const Exchange& e) { return e.started < before; });
  if (late == running_.end()) return;
  Peer& peer = late->peer;
  stop(late);
  count_failure(peer, "it takes minutes for one piece");
}

void FileFetch::count_rarity() {
  std::ranges::fill(rarity_, 0);
  for (const Peer& peer : peers_) {
    if (!peer.offer || peer.offer->pieces.has_all()) continue;
    for (size_t piece = 0; piece < rarity_.size(); ++piece) {
      if (peer.offer->pieces.has(piece)) ++rarity_[piece];
    }
  }
}

}  // namespace doppler::swarm
