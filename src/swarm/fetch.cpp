#include "swarm/fetch.h"

#include <algorithm>

#include "base/text.h"
#include "store/download_list.h"
#include "store/retry.h"
#include "swarm/file_fetch.h"

namespace doppler::swarm {
namespace {

constexpr uint32_t kConnectSeconds = 5;
constexpr uint32_t kPollMs = 50;
constexpr auto kFindTime =
    std::chrono::seconds(3);  // for a first peer with the card, if somebody looks for peers
constexpr size_t kMostPeers = 64;

store::HttpTimes times_of(const FetchOptions& options) {
  return {.connect_seconds = std::min(kConnectSeconds, options.stall_seconds),
          .stall_seconds = options.stall_seconds};
}

store::DownloadList list_of(const Card& card, const Sha256& identity) {
  store::DownloadList list{
      .name = card.name, .source = link_of(identity), .revision = {}, .kind = card.kind, .entry = card.entry};
  for (const CardFile& file : card.files) {
    list.files.push_back({.file = file.file, .from = {}, .bytes = file.bytes, .sha256 = file.sha256});
  }
  return list;
}

Result<Card> card_of(const store::Ended& ended, const Sha256& identity) {
  if (ended.failure) return forward(ended.failure->error);
  const auto& answer = *static_cast<PeerAnswer*>(ended.receiver);
  if (!answer.has_content()) return fail(ErrorKind::kIo, "A peer answers with HTTP %d.", answer.status());
  return parse_card(answer.text(), identity);
}

}  // namespace

Fetcher::Fetcher(FetchOptions options) : options_(std::move(options)) {
  for (const std::string& peer : options_.peers) totals_[peer];
}
Fetcher::~Fetcher() = default;

std::vector<std::string> Fetcher::take_new_peers() {
  std::vector<std::string> fresh;
  if (!options_.new_peers) return fresh;
  for (std::string& url : options_.new_peers()) {
    if (options_.peers.size() == kMostPeers || !totals_.emplace(url, PeerTotals{}).second) continue;
    options_.peers.push_back(url);
    fresh.push_back(std::move(url));
  }
  return fresh;
}

Result<store::DownloadList> Fetcher::list(const Sha256& identity, const std::string& wanted_name) {
  DP_TRY(const auto client, store::HttpClient::open(times_of(options_)));
  const std::string path = path_text({.kind = SwarmPath::Kind::kCard, .key = key_of_model(identity)});
  std::list<PeerAnswer> answers;
  std::string why = "none was named or found";
  std::vector<std::string> to_ask = options_.peers;
  const auto end = Clock::now() + kFindTime;
  while (!to_ask.empty() || client->running() > 0 || (options_.new_peers && Clock::now() < end)) {
    DP_CHECK(store::check_not_stopped(options_.stop));
    for (const std::string& peer : to_ask) {
      answers.emplace_back(kMostCardBytes, std::nullopt, 0);
      DP_CHECK(
          client->start({.url = peer + path, .range = {}, .if_range = {}, .bearer = {}, .is_direct = true},
                        answers.back()));
    }
    DP_TRY(const std::vector<store::Ended> ended, client->wait(kPollMs));
    for (const store::Ended& one : ended) {
      auto card = card_of(one, identity);
      if (card) {
        client->stop_all();
        return take_card(*card, identity, wanted_name);
      }
      why = "the last answer: " + card.error().sentence();
    }
    to_ask = take_new_peers();
  }
  return fail(ErrorKind::kIo, "No peer has %s (%s).", link_of(identity).c_str(), why.c_str());
}

Result<store::DownloadList> Fetcher::take_card(const Card& card, const Sha256& identity,
                                               const std::string& wanted_name) {
  card_files_ = card.files;
  if (options_.share) options_.share->add_card(card);
  store::DownloadList list = list_of(card, identity);
  DP_TRY(list.name, store::checked_name(wanted_name, card.name, list.source));
  return list;
}

Result<Fetcher::Filled> Fetcher::fill(const Wanted& wanted) {
  if (wanted.bytes > kMostFileBytes) return Filled{};
  FetchOptions options = options_;
  std::erase_if(options.peers, [&](const std::string& peer) { return !totals_[peer].dropped.empty(); });
  if (options_.new_peers) options.new_peers = [this] { return take_new_peers(); };
  if (options.peers.empty() && !options.new_peers) return Filled{};
  DP_TRY(const auto client, store::HttpClient::open(times_of(options_)));
  const auto listed = std::ranges::find(card_files_, wanted.sha256, &CardFile::sha256);
  FileFetch fetch(options, wanted, listed == card_files_.end() ? std::nullopt : std::optional(listed->root),
                  *client);
  now_ = &fetch;
  const auto done = fetch.run();
  now_ = nullptr;
  Filled filled;
  for (const FileFetch::Peer& peer : fetch.peers()) {
    if (peer.is_source) {
      filled.source_bytes = peer.bytes;
      continue;
    }
    filled.peer_bytes += peer.bytes;
    PeerTotals& totals = totals_[peer.url];
    totals.bytes += peer.bytes;
    if (peer.is_liar) totals.dropped = peer.dropped;
    if (!peer.dropped.empty() && options_.on_notice) {
      options_.on_notice(
          format_text("The peer at %s was dropped: %s", peer.url.c_str(), peer.dropped.c_str()));
    }
  }
  DP_CHECK(done);
  return filled;
}

std::vector<PeerReport> Fetcher::report() const {
  std::vector<PeerReport> out;
  for (const auto& [address, totals] : totals_) {
    out.push_back({.address = address, .bytes = totals.bytes, .dropped = totals.dropped});
  }
  if (!now_) return out;
  for (const FileFetch::Peer& peer : now_->peers()) {
    if (peer.is_source) out.push_back({.address = peer.url, .is_source = true});
    const auto at = std::ranges::find(out, peer.url, &PeerReport::address);
    at->bytes += peer.bytes;
    at->bytes_per_second = peer.rate.per_second();
  }
  return out;
}

}  // namespace doppler::swarm
