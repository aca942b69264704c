// The end of a fetch that shares: one question a second to each peer, about the first file that it may not have whole.
#include <algorithm>

#include "store/retry.h"
#include "swarm/fetch.h"
#include "swarm/peer_answer.h"
#include "swarm/tree.h"

namespace doppler::swarm {
namespace {

using std::chrono::seconds;

constexpr uint32_t kWaitForOthersPollMs = 100;
constexpr uint32_t kMostMisses = 3;  // in a row: the peer is away, or does not fetch this model
constexpr auto kAskEvery = seconds(1);
constexpr store::HttpTimes kTimes{.connect_seconds = 2, .stall_seconds = 2};

struct Other {
  std::string url;
  size_t file = 0;  // the card's first file that it may not have whole
  uint32_t misses = 0;
  Clock::time_point next_question{};
  std::unique_ptr<PeerAnswer> answer = {};

  bool is_done(size_t files) const { return file == files || misses == kMostMisses; }
};

void take_answer(Other& other, bool has_failed, uint64_t bytes) {
  const bool has_content = !has_failed && other.answer->has_content();
  const auto offer = has_content ? parse_offer(other.answer->text(), bytes) : Result<Offer>(Offer{});
  other.answer.reset();
  if (!has_content || !offer) {
    ++other.misses;
  } else if (offer->pieces.has_all()) {
    ++other.file;
    other.misses = 0;
    other.next_question = {};
  } else {
    other.misses = 0;
  }
}

}  // namespace

Result<void> Fetcher::wait_for_others(seconds most) {
  const auto end = Clock::now() + most;
  DP_TRY(const auto client, store::HttpClient::open(kTimes));
  std::vector<Other> others;
  for (const auto& [url, totals] : totals_) {
    if (totals.dropped.empty()) others.push_back({.url = url});
  }
  for (;;) {
    std::erase_if(others, [&](const Other& other) { return other.is_done(card_files_.size()); });
    const auto now = Clock::now();
    if (others.empty() || now > end) return {};
    DP_CHECK(store::check_not_stopped(options_.stop));
    for (Other& other : others) {
      if (other.answer || other.next_question > now) continue;
      const CardFile& file = card_files_[other.file];
      other.next_question = now + kAskEvery;
      other.answer = std::make_unique<PeerAnswer>(most_offer_bytes(file.bytes), std::nullopt, 0);
      const std::string path = path_text({.kind = SwarmPath::Kind::kOffer, .key = key_of_file(file.sha256)});
      DP_CHECK(client->start(
          {.url = other.url + path, .range = {}, .if_range = {}, .bearer = {}, .is_direct = true},
          *other.answer));
    }
    DP_TRY(const std::vector<store::Ended> ended, client->wait(kWaitForOthersPollMs));
    for (const store::Ended& one : ended) {
      const auto at =
          std::ranges::find_if(others, [&](const Other& o) { return o.answer.get() == one.receiver; });
      take_answer(*at, one.failure.has_value(), card_files_[at->file].bytes);
    }
  }
}

}  // namespace doppler::swarm
