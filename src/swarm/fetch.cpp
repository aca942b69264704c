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

}  // namespace

Fetcher::Fetcher(FetchOptions options) : options_(std::move(options)) {
  for (const std::string& peer : options_.peers) totals_[peer];
}
Fetcher::~Fetcher() = default;

Result<store::DownloadList> Fetcher::list(const Sha256& identity, const std::string& wanted_name) {
  DP_TRY(const auto client, store::HttpClient::open(times_of(options_)));
  const std::string path = path_text({.kind = SwarmPath::Kind::kCard, .key = key_of_model(identity)});
  std::list<PeerAnswer> answers;
  for (const std::string& peer : options_.peers) {
    answers.emplace_back(kMostCardBytes, std::nullopt, 0);
    DP_CHECK(client->start({.url = peer + path, .range = {}, .if_range = {}, .bearer = {}, .is_direct = true},
                           answers.back()));
  }
  std::string why = "no peer was named";
  while (client->running() > 0) {
    DP_CHECK(store::check_not_stopped(options_.stop));
    DP_TRY(const std::vector<store::Ended> ended, client->wait(kPollMs));
    for (const store::Ended& one : ended) {
      const auto& answer = *static_cast<PeerAnswer*>(one.receiver);
      if (one.failure) {
        why = one.failure->error.sentence();
        continue;
      }
      if (!answer.has_content()) {
        why = format_text("a peer answers with HTTP %d", answer.status());
        continue;
      }
      auto card = parse_card(answer.text(), identity);
      if (!card) {
        why = card.error().sentence();
        continue;
      }
      client->stop_all();
      for (const CardFile& file : card->files) roots_[file.sha256] = file.root;
      store::DownloadList list = list_of(*card, identity);
      DP_TRY(list.name, store::checked_name(wanted_name, card->name, list.source));
      return list;
    }
  }
  return fail(ErrorKind::kIo, "No peer has %s (the last answer: %s).", link_of(identity).c_str(),
              why.c_str());
}

Result<uint64_t> Fetcher::fill(const Wanted& wanted) {
  if (wanted.bytes > kMostFileBytes) return 0;
  FetchOptions options = options_;
  std::erase_if(options.peers, [&](const std::string& peer) { return !totals_[peer].dropped.empty(); });
  if (options.peers.empty()) return 0;
  DP_TRY(const auto client, store::HttpClient::open(times_of(options_)));
  const auto root = roots_.find(wanted.sha256);
  FileFetch fetch(options, wanted, root == roots_.end() ? std::nullopt : std::optional(root->second),
                  *client);
  const auto done = fetch.run();
  uint64_t bytes = 0;
  for (const FileFetch::Peer& peer : fetch.peers()) {
    bytes += peer.bytes;
    PeerTotals& totals = totals_[peer.url];
    totals.bytes += peer.bytes;
    if (peer.is_liar) totals.dropped = peer.dropped;
    if (!peer.dropped.empty() && options_.on_notice) {
      options_.on_notice(
          format_text("The peer at %s was dropped: %s", peer.url.c_str(), peer.dropped.c_str()));
    }
  }
  DP_CHECK(done);
  return bytes;
}

std::vector<PeerReport> Fetcher::report() const {
  std::vector<PeerReport> out;
  for (const auto& [address, totals] : totals_) {
    out.push_back({.address = address, .bytes = totals.bytes, .dropped = totals.dropped});
  }
  return out;
}

}  // namespace doppler::swarm
