// Judges each answer: it keeps right pieces and passes them on, and drops liars.
#include <algorithm>

#include "base/text.h"
#include "swarm/file_fetch.h"

namespace doppler::swarm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kMostFailures = 3;  // in a row
constexpr uint32_t kMostOvertaken = 3;
constexpr auto kOfferEvery = seconds(1);  // of a peer that is still fetching
constexpr auto kFirstPause = milliseconds(300);
constexpr auto kAbsentPause = seconds(2);  // for a peer that is not there yet

constexpr auto kRateTime = seconds(5);

}  // namespace

void Rate::add(uint64_t bytes) {
  const auto now = Clock::now();
  recent_.emplace_back(now, bytes);
  while (now - recent_.front().first > kRateTime) recent_.pop_front();
}

uint64_t Rate::per_second() const {
  const auto begin = Clock::now() - kRateTime;
  uint64_t sum = 0;
  for (const auto& [when, bytes] : recent_) sum += when > begin ? bytes : 0;
  return sum / static_cast<uint64_t>(kRateTime.count());
}

// The peer does not listen yet, or it has not begun with this file.
bool FileFetch::is_absent(const Exchange& exchange, const std::optional<store::Failure>& failure) {
  if (exchange.peer.is_source) return false;
  return failure ? failure->is_refused_connection : exchange.kind == Kind::kOffer && exchange.status() == 404;
}

Result<void> FileFetch::end(Exchange& exchange, const std::optional<store::Failure>& failure) {
  Peer& peer = exchange.peer;
  count_end(exchange);
  const bool is_failure = failure || !exchange.has_content();
  peer.has_failed_piece = peer.has_failed_piece || (is_failure && exchange.kind == Kind::kPiece);
  if (failure && !failure->may_pass) {
    drop_liar(peer, failure->error.sentence());
  } else if (is_patient_ && is_absent(exchange, failure)) {
    peer.not_before = Clock::now() + kAbsentPause;
    peer.offer.reset();
    learn();
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
  if (options_.share && offer->peer == options_.share->number())
    return drop(peer, "it is this machine itself");
  if (hashes_ && offer->root != *root_) return drop_liar(peer, "it offers a file with another root");
  const auto now = Clock::now();
  std::map<uint64_t, Clock::time_point> coming;
  for (const uint64_t piece : offer->coming) {
    const auto before = peer.coming.find(piece);
    coming.emplace(piece, before == peer.coming.end() ? now : before->second);
  }
  if (offer->pieces.size() > peer.most_offered) last_news_ = now;
  peer.most_offered = std::max(peer.most_offered, offer->pieces.size());
  peer.coming = std::move(coming);
  peer.offer = std::move(*offer);
  if (!peer.has_failed_piece) peer.failures = 0;
  peer.next_offer = now + kOfferEvery;
  learn();
}

Result<void> FileFetch::take_proof(Exchange& exchange) {
  if (!hashes_->take_proof(exchange.number, exchange.content())) {
    drop_liar(exchange.peer, "it sent a wrong proof");
    return {};
  }
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
  peer.has_failed_piece = false;
  if (states_[piece] == State::kRight) return {};
  DP_CHECK(wanted_.file.write_at(exchange.content(), piece * kPieceBytes));
  DP_CHECK(wanted_.journal.note(piece, exchange.content().size()));
  note_right(piece);
  peer.bytes += exchange.content().size();
  peer.rate.add(exchange.content().size());
  last_progress_ = last_news_ = Clock::now();
  const bool is_first = !peer.piece_time;
  peer.piece_time = last_progress_ - exchange.started;
  if (is_first) learn();  // its time sets the patience with others
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
  if (hashes_ && !peer.is_source) peer.offer.reset();  // its pieces may be gone
  learn();
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
  learn();
}

void FileFetch::drop_liar(Peer& peer, const std::string& why) {
  peer.is_liar = true;
  drop(peer, why);
}

void FileFetch::learn() {
  std::vector<PieceChoice::Fetching> fetching;
  size_t complete_peers = 0;
  const auto trusted_since = Clock::now() - patience();
  for (const Peer& peer : peers_) {
    if (!peer.offer || peer.is_source || is_silent(peer)) continue;
    if (peer.offer->pieces.has_all()) {
      ++complete_peers;
      continue;
    }
    PieceChoice::Fetching& one = fetching.emplace_back(
        PieceChoice::Fetching{.peer = peer.offer->peer, .has = peer.offer->pieces, .coming = {}});
    for (const auto& [piece, since] : peer.coming) {
      if (since > trusted_since) one.coming.push_back(piece);
    }
  }
  choice_.learn(fetching, complete_peers);
}

}  // namespace doppler::swarm
