// The loop of a file's fetch: it decides which peer is asked for which piece, and when the fetch ends.
#include "swarm/file_fetch.h"

#include <algorithm>
#include <random>

#include "store/retry.h"

namespace doppler::swarm {
namespace {

using std::chrono::seconds;

constexpr uint32_t kFileFetchPollMs = 50;  // how soon a stop or a pause's end is noticed
constexpr size_t kMostRunning = 32;        // requests; each holds a piece in memory
constexpr auto kPromptPiece = seconds(1);
constexpr uint32_t kMostRunningOfPrompt = 2;   // one is sent while the other is judged
constexpr uint32_t kMostRunningOfSource = 4;   // it is far away, so it takes more to fill the line
constexpr auto kLateAfter = seconds(5);        // the least patience with a piece that is under way
constexpr auto kMostPieceTime = seconds(300);  // 3.5 KB/s: slower is a failure

// A slow peer is asked for one piece at a time. If many waited for several pieces each, all would get their first piece
// late.
uint32_t most_running(const FileFetch::Peer& peer) {
  if (!peer.piece_time || *peer.piece_time > kPromptPiece) return 1;
  return peer.is_source ? kMostRunningOfSource : kMostRunningOfPrompt;
}

}  // namespace

FileFetch::FileFetch(const FetchOptions& options, const store::PieceSource::Wanted& wanted,
                     std::optional<Sha256> root, store::HttpClient& client)
    : options_(options),
      wanted_(wanted),
      client_(client),
      root_(root),
      is_patient_(root.has_value()),
      states_(piece_count(wanted.bytes), State::kMissing),
      under_way_(states_.size()),
      choice_(states_.size(), options.share ? options.share->number() : std::random_device{}(),
              options.in_order) {
  for (const std::string& url : options.peers) peers_.push_back({.url = url});
  for (size_t piece = 0; piece < states_.size(); ++piece) {
    if (wanted.journal.done(piece) == wanted.journal.size(piece)) states_[piece] = State::kKept;
  }
  if (wanted.source) peers_.push_back({.url = wanted.source->url, .is_source = true});
}

Result<void> FileFetch::run() {
  if (root_) trust_root();
  for (;;) {
    DP_CHECK(store::check_not_stopped(options_.stop));
    stop_late();
    if (options_.new_peers) {
      for (std::string& url : options_.new_peers()) peers_.push_back({.url = std::move(url)});
    }
    DP_CHECK(settle_root());
    if (is_disputed_ || is_complete()) break;
    DP_CHECK(start_requests());
    if (running_.empty() && !has_more_to_expect()) break;
    DP_TRY(const std::vector<store::Ended> ended, client_.wait(kFileFetchPollMs));
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

// Call this if no request is under way. It says whether that may change.
bool FileFetch::has_more_to_expect() const {
  const auto now = Clock::now();
  if (now - last_news_ > std::max<Clock::duration>(seconds(options_.stall_seconds), 2 * patience()))
    return false;
  if (options_.new_peers && !wanted_.source) return true;
  // Without a peer the download fetches the rest from its source by itself.
  return std::ranges::any_of(peers_, [&](const Peer& peer) {
    if (!peer.dropped.empty() || peer.is_source) return false;
    const bool may_have_more = !(peer.offer && peer.offer->pieces.has_all());
    return peer.not_before > now || ((hashes_ || !wanted_.source) && (may_have_more || wanted_.source));
  });
}

// Believes the root of the peers' offers if all agree and no better source names one.
Result<void> FileFetch::settle_root() {
  if (hashes_) return {};
  for (const Peer& peer : peers_) {
    if (peer.dropped.empty() && !peer.offer && !peer.is_source) return {};  // its answer may disagree
  }
  for (const Peer& peer : peers_) {
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
  if (root_) trust_root();
  return {};
}

void FileFetch::trust_root() {
  hashes_.emplace(wanted_.bytes, *root_);
  for (Peer& peer : peers_) {
    if (!peer.is_source) continue;
    peer.offer = {.bytes = wanted_.bytes, .root = *root_, .pieces = PieceSet(states_.size(), true)};
  }
  if (!options_.share || !is_patient_) return;  // only pieces of a proved root are passed on
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
    if (!peer.is_source && !peer.is_asked && is_partial && peer.next_offer <= now) {
      DP_CHECK(start(peer, Kind::kOffer, 0));
    }
    if (!hashes_ || !peer.offer) continue;
    const uint32_t most = most_running(peer) + (peer.is_asked ? 1 : 0);
    while (peer.running < most && running_.size() < kMostRunning) {
      DP_TRY(const bool has_started, start_next(peer));
      if (!has_started) break;
    }
  }
  return {};
}

bool FileFetch::is_open(uint64_t piece) const {
  return states_[piece] != State::kRight && under_way_[piece] == 0 && hashes_->knows(piece);
}

// Starts the next proof or piece from this peer. false: the peer has nothing that is needed now.
Result<bool> FileFetch::start_next(Peer& peer) {
  if (!peer.is_source) {
    DP_TRY(const bool has_started, start_proof(peer));
    if (has_started) return true;
  }
  const PieceChoice::From from{
      .has = peer.offer->pieces, .is_source = peer.is_source, .is_worth_more = is_worth_more(peer)};
  auto piece = choice_.next(from, [&](uint64_t one) { return is_open(one); });
  if (!piece) piece = late_piece(peer);
  if (!piece) return false;
  DP_CHECK(start(peer, Kind::kPiece, *piece));
  return true;
}

Result<bool> FileFetch::start_proof(Peer& peer) {
  for (uint64_t piece = 0; piece < states_.size(); ++piece) {
    const uint64_t run = piece / kRunPieces;
    if (hashes_->knows(piece) || asked_runs_.contains(run)) {
      piece = (run + 1) * kRunPieces - 1;
    } else if (states_[piece] != State::kRight && peer.offer->pieces.has(piece)) {
      asked_runs_.insert(run);
      DP_CHECK(start(peer, Kind::kProof, run));
      return true;
    }
  }
  return false;
}

// Says whether a peer with all pieces, or the source, is asked for more than the pieces that only it has. That is so if
// it is faster than the others, or if they are silent.
bool FileFetch::is_worth_more(const Peer& peer) const {
  if (Clock::now() - last_progress_ > patience()) return true;
  Clock::duration sum{};
  int count = 0;
  for (const Peer& other : peers_) {
    const bool comes_first =
        !other.is_source && other.offer && (peer.is_source || !other.offer->pieces.has_all());
    if (!comes_first || !other.piece_time) continue;
    sum += *other.piece_time;
    ++count;
  }
  if (count == 0) return false;
  // A source that was not asked yet is tried if the peers are slow.
  if (!peer.piece_time) return peer.is_source && peer.running == 0 && sum / count > kPromptPiece;
  return *peer.piece_time <= sum / count;
}

// The time that a piece may be under way at another peer before this machine fetches it too. Machines that fetch from
// the same machine wait equally long.
Clock::duration FileFetch::patience() const {
  Clock::duration slowest{};
  for (const Peer& peer : peers_) {
    if (peer.offer && peer.offer->pieces.has_all())
      slowest = std::max(slowest, peer.piece_time.value_or(slowest));
  }
  return std::max<Clock::duration>(least_patience(), 2 * slowest);
}

Clock::duration FileFetch::least_patience() const {
  return std::min<Clock::duration>(kLateAfter, seconds(options_.stall_seconds));
}

// Returns a piece that another peer should have sent by now.
std::optional<uint64_t> FileFetch::late_piece(const Peer& peer) const {
  const auto before = Clock::now() - std::max<Clock::duration>(
                                         least_patience(), 2 * peer.piece_time.value_or(Clock::duration{}));
  for (const Exchange& exchange : running_) {  // the oldest first
    if (exchange.kind == Kind::kPiece && &exchange.peer != &peer && exchange.started < before &&
        under_way_[exchange.number] == 1 && peer.offer->pieces.has(exchange.number)) {
      return exchange.number;
    }
  }
  return {};
}

// A silent peer keeps the others waiting. Meanwhile its word about pieces that it has or fetches counts for nothing.
bool FileFetch::is_silent(const Peer& peer) const {
  const auto before = Clock::now() - least_patience();
  return peer.failures > 0 || std::ranges::any_of(running_, [&](const Exchange& exchange) {
           return &exchange.peer == &peer && exchange.kind == Kind::kPiece && exchange.started < before;
         });
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
    if (++under_way_[number] == 1 && shared_) shared_->set_coming(number, true);
  } else {
    peer.is_asked = true;
  }
  ++peer.running;
  running_.emplace_back(peer, kind, number, most, range, wanted_.bytes);
  return send(peer, path, range);
}

Result<void> FileFetch::send(const Peer& peer, const SwarmPath& path, std::optional<store::ByteRange> range) {
  if (peer.is_source) {
    store::Request request = *wanted_.source;
    request.range = range;
    return client_.start(request, running_.back());
  }
  return client_.start(
      {.url = peer.url + path_text(path), .range = range, .if_range = {}, .bearer = {}, .is_direct = true},
      running_.back());
}

void FileFetch::count_end(const Exchange& exchange) {
  --exchange.peer.running;
  if (exchange.kind == Kind::kOffer) exchange.peer.is_asked = false;
  if (exchange.kind == Kind::kProof) asked_runs_.erase(exchange.number);
  if (exchange.kind != Kind::kPiece) return;
  if (--under_way_[exchange.number] == 0 && shared_) shared_->set_coming(exchange.number, false);
}

void FileFetch::stop(std::list<Exchange>::iterator exchange) {
  client_.stop(*exchange);
  count_end(*exchange);
  running_.erase(exchange);
}

void FileFetch::stop_late() {
  const auto before = Clock::now() - kMostPieceTime;
  const auto late = std::ranges::find_if(running_, [&](const Exchange& e) { return e.started < before; });
  if (late == running_.end()) return;
  Peer& peer = late->peer;
  stop(late);
  count_failure(peer, "it takes minutes for one piece");
}

}  // namespace doppler::swarm
